"""Reading untrusted JSON: lone surrogates at any depth, times that no date holds."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.wire.parts import MS_UNTIL, ms, parse


@pytest.mark.parametrize(
    ("escaped", "read"),
    [
        (rb"\ud83d", "\ufffd"),
        (rb"\uDE00", "\ufffd"),
        (rb"\ud83d\ude00", "\U0001f600"),
        (rb"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        (rb"\ude00\ud83d", "\ufffd\ufffd"),
        (rb"\\ud83d \ud83d", "\\ud83d \ufffd"),
        (rb"\\\ud83dx", "\\\ufffdx"),
        (rb"\ud83d\n\"", '\ufffd\n"'),
    ],
)
def test_lone_surrogates_are_replaced_and_nothing_else(escaped: bytes, read: str) -> None:
    assert parse(b'{"a":"' + escaped + b'"}') == {"a": read}


@given(st.text(st.sampled_from('\\"ud8c\U0001f600\n')))
def test_a_text_beside_a_lone_surrogate_is_read_as_it_is(text: str) -> None:

    assert parse(json.dumps([text, "\ud800"]).encode()) == [text, "\ufffd"]


@pytest.mark.parametrize("depth", [100, 300, 700, 1000, 5000])
def test_a_deep_value_is_read_or_corrupt_whatever_its_texts_hold(depth: int) -> None:
    plain = b"[" * depth + b'"x"' + b"]" * depth
    lone = b"[" * depth + b'"\\ud83d"' + b"]" * depth
    assert (parse(plain) is None) == (parse(lone) is None)


@pytest.mark.parametrize(
    ("value", "at"),
    [
        (1_790_000_000_000, 1_790_000_000_000),
        (1_790_000_000, 1_790_000_000_000),
        (MS_UNTIL - 1, MS_UNTIL - 1),
        (MS_UNTIL, None),
        (900_000_000_000, None),
        (253_402_300_800_000, None),
        (1e300, None),
        (float("nan"), None),
        (-5, None),
        (True, None),
        ("1790000000000", None),
    ],
)
def test_a_time_is_one_that_a_date_holds(value: object, at: int | None) -> None:
    assert ms(value) == at
