"""What is left of a token where another program cut the text: titles are prompts cut short."""

from __future__ import annotations

import pytest

from stages.redact import Redactor
from stages.secret_tokens import without_cut_token

HEADS = ("gh" + "p_", "sk-" + "ant-", "xo" + "xb-", "AK" + "IA", "gl" + "pat-")


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("kept", [4, 7, 11])
def test_a_token_cut_short_goes_with_its_beginning(head: str, kept: int) -> None:
    title = f"deploy with {head}{'A1b2C3d4E5f6G7h8'[:kept]}"
    assert Redactor(b"k" * 32)(title) == title, "no rule can know so little of one"
    assert without_cut_token(title) == "deploy with …"


@pytest.mark.parametrize(
    "title",
    [
        "why does AKIMBO2 fail",
        "improve SECURITY",
        "the SEC of the page",
        "look at pul-request",
        "令牌放在哪里 v1.0",
        "port 3000 is taken",
        "rename gho to ghost2",
    ],
)
def test_other_ends_of_titles_are_kept(title: str) -> None:
    assert without_cut_token(title) == title
