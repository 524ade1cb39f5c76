"""Senses of a seed, fixed compounds, hints of a name, and returns to an earlier subject."""

from __future__ import annotations

import pytest

from stages.aggregate import in_order
from stages.cues import comes_back, turns_away
from stages.evidence import blended, evidence
from stages.seeds import prepare, strength
from stages.senses import hints
from tests.stages.dialogues import Said, session
from tests.stages.test_aggregate import corpus


def test_a_name_hints_only_what_the_seeds_do_not_say() -> None:
    assert hints("access-tokens", frozenset({"token"})) == frozenset({"access"})
    assert hints("tests", frozenset()) == frozenset()  # narration says nothing


def test_a_seed_within_a_fixed_longer_word_is_weaker() -> None:
    buckets = [
        Said("令牌桶和漏桶哪个好？", "令牌桶允许突发，漏桶不行。"),
        Said("用令牌桶", "令牌桶限流写好了。令牌桶的容量是 10。"),
    ]
    tokens = [
        Said("令牌过期太快", "令牌过期时间改成 30 分钟。"),
        Said("令牌过期后呢", "令牌过期后要重新登录。"),
    ]
    items = [evidence(turn) for turn in in_order(corpus(*session("b", buckets), *session("t", tokens)))]
    stats = blended(None, items)
    (seed,) = prepare(["令牌"], items, stats)
    assert seed.compounds == frozenset({"令牌桶"})
    within = next(item for item in items if item.own_text == "用令牌桶")
    alone = next(item for item in items if item.own_text == "令牌过期太快")
    assert strength(seed, within, stats) < 0.6 * strength(seed, alone, stats)


@pytest.mark.parametrize(
    "text", ["回到缓存：再试一次", "back to the queue: it grows", "ok, back to the login page"]
)
def test_words_that_come_back_to_a_subject(text: str) -> None:
    assert comes_back(text)


@pytest.mark.parametrize("text", ["顺便看看首页", "Now something else: dark mode", "对了，文档在哪里"])
def test_words_that_turn_away(text: str) -> None:
    assert turns_away(text) and not comes_back(text)


def test_a_push_back_is_no_return() -> None:
    assert not comes_back("push it back upstream")
