"""What the redactor skips for speed never skips a secret: with every shortcut blocked the result is the same."""

from __future__ import annotations

import re
from base64 import b64encode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages import redact, secret_rules
from stages.redact import Redactor
from stages.secret_base64 import readable
from tests.stages.look_alikes import LOOK_ALIKES
from tests.stages.planted_secrets import named_texts, provider_texts, tokens

KEY = b"a key of this test"
PLANTED = [*(planted.text for planted in (*provider_texts(3), *named_texts(3))), *tokens(3).values()]
GLUE = (
    *(
        "",
        " ",
        '"',
        "'",
        "`",
        "\n",
        "\\n",
        "\\",
        '\\"',
        "=",
        ":",
        ".",
        "/",
        "+",
        ",",
        "-",
        "_",
        "%3D",
        "[31m",
    ),
    *("code=", "session ", "Bearer ", "apikey: ", "token ", '{"a":"', '"+"', '" "', "@", "A", "f", "0", "n"),
    *("https://hooks.slack.com/services/T1/B2/", "sig=", "curl -u ", "cookie: a=", "<private>", "</private>"),
    *("密码是", "令", "hvs.", "dp.pt.", "ya29.", "heroku ", ";base64,", "data:image/png;base64,"),
)
pieces = st.one_of(
    st.sampled_from(PLANTED),
    st.sampled_from(LOOK_ALIKES),
    st.sampled_from(GLUE),
    st.text(max_size=40),
    st.text(alphabet="aK9_-/+=.", min_size=15, max_size=60),
    st.binary(min_size=12, max_size=40).map(lambda raw: b64encode(raw).decode()),
)
texts = st.lists(pieces, max_size=8).map("".join)


def without_shortcuts(text: str) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redact, "may_name", lambda text: True)
        patch.setattr(redact, "may_shape", lambda text: True)
        patch.setattr(secret_rules, "_HEADLESS", re.compile(rb"(?!)"))
        patch.setattr(secret_rules, "_NEAR_ENDS", frozenset(range(256)))
        return Redactor(KEY)(text)


@settings(max_examples=600, deadline=None)
@given(texts)
def test_shortcuts_change_nothing(text: str) -> None:
    assert Redactor(KEY)(text) == without_shortcuts(text)


@pytest.mark.parametrize("text", [*PLANTED, *LOOK_ALIKES])
def test_shortcuts_change_nothing_known(text: str) -> None:
    for before in GLUE:
        assert Redactor(KEY)(before + text) == without_shortcuts(before + text)


@given(st.binary(min_size=15, max_size=15), st.booleans())
def test_readable_is_what_decodes_to_ascii(raw: bytes, ascii: bool) -> None:
    plain = bytes(byte & 127 for byte in raw) if ascii else raw
    assert readable(b"." + b64encode(plain), 1) == plain.isascii()
