import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.store import names


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('a\\b/c:d*e?f"g<h>i|j', "a_b_c_d_e_f_g_h_i_j"),
        ("  auth \t\n flow ", "auth_flow"),
        ("a" * 200, "a" * 120),
        ("", "untitled"),
        ("   ", "untitled"),
        ("登录 流程", "登录_流程"),
        ("CON", "CON_"),
        ("nul.txt", "nul_.txt"),
        ("com1", "com1_"),
        ("console", "console"),
        (".hidden", "_hidden"),
        ("ends.", "ends_"),
        ("e\u0301", "é"),
        ("a\u202eb\x00c\ud800d", "a_b_c_d"),
    ],
)
def test_file_names_follow_the_rules_of_the_other_server_and_of_every_file_system(
    text: str, name: str
) -> None:
    assert names.file_name(text) == name


def test_long_chinese_names_fit_the_file_system_and_stay_apart() -> None:
    first, second = names.file_name("决" * 119 + "甲"), names.file_name("决" * 119 + "乙")
    assert max(len(first.encode()), len(second.encode())) <= names.NAME_BYTES
    assert first != second


@given(st.text())
def test_any_text_gives_one_safe_segment_that_is_its_own_name(text: str) -> None:
    name = names.file_name(text)
    assert name and not name.startswith(".") and len(name.encode("utf-8")) <= names.NAME_BYTES + 1
    assert not set(name) & set('\\/:*?"<>|\0\n')
    assert names.file_name(name) == name


@pytest.mark.parametrize(
    ("folder", "place"),
    [
        (None, "memory"),
        ("", "memory"),
        ("/".join(("memory", "decisions", "")), "memory/decisions"),
        ("decisions", "memory/decisions"),
        ("Memory\\Rules", "memory/Rules"),
        ("notes", "notes"),
        ("archive/决策", "archive/决策"),
        ("./memory/./x", "memory/x"),
    ],
)
def test_folders_lie_below_the_store(folder: str | None, place: str) -> None:
    assert names.folder_name(folder) == place


@pytest.mark.parametrize(
    "folder",
    [
        "..",
        "memory/../../etc",
        "memory\\..\\x",
        "/etc",
        "C:/x",
        "\\\\host\\share",
        "essence",
        "themes/x",
        "a/\0",
    ],
)
def test_folders_that_leave_the_store_are_refused(folder: str) -> None:
    with pytest.raises(BadInput, match="folder"):
        names.folder_name(folder)


def test_a_folder_may_not_be_deeper_than_the_limit() -> None:
    assert names.folder_name("/".join(string.ascii_lowercase[:7])).count("/") == 7
    with pytest.raises(BadInput, match="deeper"):
        names.folder_name("/".join(string.ascii_lowercase[:8]))


@pytest.mark.parametrize("key", ["../x", "a/../../b", "..", "x\\..\\y", "a\0b"])
def test_climbing_keys_and_themes_are_refused(key: str) -> None:
    for named in (names.key_name, names.theme_name):
        with pytest.raises(BadInput):
            named(key)


def test_a_key_may_carry_its_extension() -> None:
    assert names.key_name("auth-flow.md") == "auth-flow"
    assert names.key_name("src/app.ts") == "src_app.ts"


def test_an_empty_theme_is_refused() -> None:
    with pytest.raises(BadInput, match="empty"):
        names.theme_name("  ")


def test_a_name_means_the_existing_one_that_differs_in_case_or_normal_form_only() -> None:
    assert names.same("auth", ["Auth", "auth"]) == "auth"
    assert names.same("AUTH", ["Auth"]) == "Auth"
    assert names.same("e\u0301.md", ["É.md"]) == "É.md"
    assert names.same("auth", ["other"]) is None
