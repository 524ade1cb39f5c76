"""Filler goes, meaning stays: single sentences, leads, guesses."""

from __future__ import annotations

import pytest

from stages.refining.filler import impersonal, is_filler, is_hedged, strip_lead


@pytest.mark.parametrize(
    "sentence",
    [
        "Let me read the server first.",
        "Let's see what happens.",
        "Great!",
        "Perfect!",
        "You're absolutely right!",
        "You are right.",
        "Now let me check the tests.",
        "I'll now update the config.",
        "I will look at the file.",
        "Now I need to fix the import.",
        "First, let me look at the structure.",
        "Looking at the code now.",
        "Would you like me to continue?",
        "Is there anything else you need?",
        "Let me know if you have questions.",
        "Feel free to ask.",
        "Here's what I did:",
        "Done!",
        "Excellent! Let me also update the README.",
        "Good question!",
        "I can see the problem now.",
        "No response requested.",
        "You are welcome.",
        "---",
        "✅",
        "我来看看这个文件。",
        "好的，现在改一下。",
        "让我先看一下代码",
        "好的",
        "没问题！",
        "现在我来修改配置。",
        "接下来我会运行测试。",
        "先看一下目录结构。",
        "如果有问题请告诉我。",
        "需要我继续吗？",
        "希望对你有帮助！",
        "完成！",
    ],
)
def test_filler(sentence: str) -> None:
    assert is_filler(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "Fixed: server.py now listens on port 3001.",
        "The build fails because the type is missing.",
        "Great, the build passes and all 12 tests are green.",
        "I've added the endpoint.",
        "All tests pass.",
        "No, comments are stored separately.",
        "Yes: 180 rows in total.",
        "端口已从 3000 改为 3001。",
        "好的，已经把 packageManager 改成 pnpm。",
        "原因是导入路径缺少后缀。",
        "我把配置改成了 3001。",
        "Done: the port is 3001 now.",
        "Right-to-left text is mirrored.",
        "Let's use SQLite instead of Redis.",
    ],
)
def test_meaning_is_no_filler(sentence: str) -> None:
    assert not is_filler(sentence)


@pytest.mark.parametrize(
    ("sentence", "rest"),
    [
        ("Perfect! I've added X.", "I've added X."),
        ("Great, the build passes.", "the build passes."),
        ("好的，已完成。", "已完成。"),
        ("OK. Yes, I did it.", "I did it."),
        ("Okay-dokey is a word.", "Okay-dokey is a word."),
    ],
)
def test_leads_are_stripped(sentence: str, rest: str) -> None:
    assert strip_lead(sentence) == rest


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("I've successfully added the route.", "Added the route."),
        ("I fixed the loop.", "Fixed the loop."),
        ("We have removed the flag.", "Removed the flag."),
        ("Perfect! I've also updated the README.", "Updated the README."),
        ("I can help with app.py.", "I can help with app.py."),
        ("I expect trouble.", "I expect trouble."),
        ("我把端口改成 3001。", "把端口改成 3001。"),
    ],
)
def test_the_speaker_is_dropped(sentence: str, words: str) -> None:
    assert impersonal(sentence) == words


@pytest.mark.parametrize(
    "sentence", ["The cache might be stale.", "可能是缓存的问题", "I think the lock is held."]
)
def test_guesses(sentence: str) -> None:
    assert is_hedged(sentence)


def test_statements_are_no_guesses() -> None:
    assert not is_hedged("The cache is stale because the key ignores the tenant.")
    assert not is_hedged("Released on May 5.")
