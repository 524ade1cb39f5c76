"""What callers rely on: placeholders, counts, idempotence, private spans, the whole value gone."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.redact import RULES_VERSION, Redactor
from tests.stages.look_alikes import LOOK_ALIKES
from tests.stages.planted_secrets import Maker, Planted, named_texts, provider_texts, tokens

KEY = b"a key of this test"
PIECE = 8
PLANTED = [*provider_texts(1), *named_texts(1), *named_texts(2)]


def redact(text: str, key: bytes = KEY) -> str:
    return Redactor(key)(text)


def survivors(planted: Planted, text: str) -> list[str]:
    """Pieces of the planted secrets that the text still holds: of a long one, any eight characters."""
    left = [secret for secret in planted.secrets if secret in text]
    for secret in planted.secrets:
        if len(secret) >= 12 and " " not in secret:
            left += [
                secret[i : i + PIECE] for i in range(len(secret) - PIECE + 1) if secret[i : i + PIECE] in text
            ]
    return left


def test_enough_is_planted() -> None:
    assert len({planted.label for planted in named_texts(1)}) >= 80
    assert len(tokens(1)) >= 40
    assert len(set(LOOK_ALIKES)) >= 80


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.label)
def test_secret_goes_and_the_rest_stays(planted: Planted) -> None:
    redacted = redact(planted.text)
    assert survivors(planted, redacted) == []
    assert planted.kept in redacted
    assert redact(redacted) == redacted


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_look_alike_is_kept(text: str) -> None:
    assert redact(text) == text


def test_look_alikes_are_kept_in_one_text() -> None:
    text = "\n\n".join(LOOK_ALIKES)
    assert redact(text) == text


def test_placeholder_tells_the_kind_and_has_a_fixed_length() -> None:
    found = re.fullmatch(r"(\[secret:github-token:[0-9a-f]{8}\])", redact(tokens(1)["github-classic"]))
    assert found is not None


def test_equal_secrets_give_equal_placeholders() -> None:
    token, other = tokens(1)["npm"], tokens(2)["npm"]
    first, second, third = redact(f"{token} {token}\n{other}").split()
    assert first == second != third
    assert redact(f"x {token}").endswith(first)


def test_a_password_gives_the_same_digest_wherever_it_stands() -> None:
    password = Maker(5).password()
    texts = (
        f"PASSWORD={password}\n",
        f'{{"password": "{password}"}}',
        f"redis://:{password}@h/0",
        f"密码是{password}",
    )
    digests = {match[1] for text in texts for match in re.finditer(r":([0-9a-f]{8})\]", redact(text))}
    assert len(digests) == 1


def test_another_key_gives_other_placeholders() -> None:
    token = tokens(1)["npm"]
    assert redact(token, b"one") != redact(token, b"two")
    assert redact(token, b"") != redact(token, b"k" * 1000)


def test_counts_are_by_kind_and_hold_no_value() -> None:
    redactor = Redactor(KEY)
    made = tokens(3)
    redactor(f"{made['npm']} {made['npm']} {made['jwt']} <private>x</private>")
    assert redactor.counts == {"npm-token": 2, "jwt": 1, "private": 1}
    assert made["npm"] not in repr(vars(redactor))


def test_a_secret_named_once_goes_everywhere_in_the_text() -> None:
    password = Maker(6).make(16)
    assert password not in redact(f"{password}\npassword: {password}\nthen type {password}.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a <private>b</private> c", "a [private] c"),
        ("a <PRIVATE>b\nc</Private > d", "a [private] d"),
        ('a <private reason="x">b</private>', "a [private]"),
        ("a <private>b <private>c</private> d</private> e", "a [private] e"),
        ("a <private>b</private> c <private>d\ne", "a [private] c [private]"),
        ("<private></private>", "[private]"),
        ("x </private> y", "x </private> y"),
        ("the tag `<private>` hides a span", "the tag `<private>` hides a span"),
        ("`<private>` b </private> c", "`[private] c"),
        ("`<private>b", "`[private]"),
        ("<privateer>y", "<privateer>y"),
        ("中文<private>秘密</private>。", "中文[private]。"),
    ],
)
def test_private_spans(text: str, expected: str) -> None:
    assert redact(text) == expected


def test_text_without_secrets_is_the_same_object() -> None:
    text = "plain 中文 " * 50
    assert redact(text) is text


def test_odd_texts_do_no_harm() -> None:
    for text in (
        "",
        "\0",
        "\ud83d",
        "\ud83d\ude00 password=\ud83d",
        "İ密码",
        "password=",
        "密",
        "@",
        "=" * 30,
    ):
        assert redact(redact(text)) == redact(text)


def test_many_secrets_in_a_large_text() -> None:
    made = provider_texts(4)
    filler = "2026-01-02 INFO 一切正常 all is well, nothing to see here\n" * 40
    text = "".join(f"{planted.text}\n{filler}" for planted in made)
    redacted = redact(text)
    assert len(text) > 500_000
    assert not [secret for planted in made for secret in planted.secrets if secret in redacted]
    assert redact(redacted) == redacted


@pytest.mark.parametrize("planted", named_texts(7), ids=lambda planted: planted.label)
def test_secret_in_a_url_encoded_text(planted: Planted) -> None:
    secret = planted.secrets[0]
    if "password=" in planted.text and len(planted.secrets) == 1:
        assert secret not in redact("https://h.example.com/?next=" + quote(f"password={secret}", safe=""))


FRAGMENTS = st.sampled_from(
    [planted.text for planted in named_texts(8)]
    + list(tokens(8).values())
    + list(LOOK_ALIKES)
    + [
        "password",
        "=",
        ": ",
        '"',
        "'",
        "\\",
        "\n",
        "[secret:",
        ":0a1b2c3d]",
        "[private]",
        "<private>",
        "%3D",
        "密码",
        "@",
        "://",
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(FRAGMENTS | st.text(max_size=8), max_size=8))
def test_redacting_twice_is_redacting_once(pieces: list[str]) -> None:
    once = redact("".join(pieces))
    assert redact(once) == once


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60), st.sampled_from(sorted(tokens(9).values())), st.text(max_size=60))
def test_a_token_goes_whatever_is_around_it(before: str, token: str, after: str) -> None:
    assert token not in redact(f"{before} {token} {after}")


def test_rules_have_a_version() -> None:
    assert RULES_VERSION >= 1
