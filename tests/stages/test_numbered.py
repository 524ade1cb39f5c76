"""Numbered lines: redacted as if they had no numbers, shown with them."""

from __future__ import annotations

import base64

import pytest

from stages.redact import Redactor
from stages.wire.numbered import redacted
from tests.stages.planted_secrets import Maker, Planted, named_texts

REDACT = Redactor(b"a key of this test")


def numbered(text: str, start: int = 1) -> str:
    return "\n".join(f"{number}\t{line}" for number, line in enumerate(text.split("\n"), start))


@pytest.mark.parametrize("planted", named_texts(21), ids=lambda planted: planted.label)
def test_a_secret_goes_as_if_there_were_no_numbers(planted: Planted) -> None:
    text = f"first\n{planted.text}\nlast"
    shown = redacted(numbered(text), REDACT)
    plain = "\n".join(line.partition("\t")[2] for line in shown.split("\n"))
    assert plain == REDACT(text)


def test_lines_behind_a_secret_of_several_lines_keep_their_numbers() -> None:
    secret = base64.encodebytes(f"DB_PASSWORD={Maker(1).make(90)}\n".encode()).decode().strip()
    assert "\n" in secret
    below = secret.count("\n") + 4
    shown = redacted(numbered(f"a\nb\n{secret}\n\nend"), REDACT).split("\n")
    assert shown[:2] == ["1\ta", "2\tb"] and shown[2].startswith("3\t[secret:")
    assert shown[3:] == [f"{below}\t", f"{below + 1}\tend"]


def test_other_text_is_redacted_as_it_is() -> None:
    password = Maker(2).make(16)
    for text in (
        f"password={password}",
        f"1\ta\n2 password={password}",
        f"1\ta\n\npassword={password}\n7\tb",
    ):
        assert redacted(text, REDACT) == REDACT(text) != text


def test_text_without_secrets_stays_as_it_is() -> None:
    for text in ("", "1\t", "  1\ta\n  2\tb\n\n<system>2 lines</system>", "1\ta\n3\tb", "\t\n"):
        assert redacted(text, REDACT) == text
