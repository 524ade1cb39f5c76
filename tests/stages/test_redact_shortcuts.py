"""What the redactor skips for speed never skips a secret: with every shortcut blocked the result is the same."""

from __future__ import annotations

import re
from base64 import b64encode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages import redact, secret_plain, secret_rules
from stages.redact import Redactor
from stages.secret_base64 import readable
from stages.secret_names import NEEDLES, NEEDLES_ASSIGNED, may_assign, may_name
from stages.secret_shapes import may_shape
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
    *(
        "\n    ",
        "\n        ",
        "x = ",
        "x: ",
        "mode ",
        "SESS = ",
        "bearer: ",
        "\\\n    ",
        "\\\\n ",
        "heroku\n    ",
        "self.",
    ),
    *(
        "code=4/0",
        "4%2F0",
        "abc8Q~",
        "X_SK=",
        "x-amz-signature=",
        "feishu.cn/a/hook/",
        "?key=",
        "\x1b[0m",
        "| sudo -S",
    ),
    *("user,password\n", "| password |\n| ", "mnemonic=", "psk=", "pw: ", "password:\n", "identified by '"),
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
        patch.setattr(secret_rules, "HEADLESS", re.compile(rb"(?!)"))
        patch.setattr(secret_rules, "PLAIN", re.compile(rb"(?!)"))
        return Redactor(KEY)(text)


@settings(max_examples=600, deadline=None)
@given(texts)
def test_shortcuts_change_nothing(text: str) -> None:
    assert Redactor(KEY)(text) == without_shortcuts(text)


@pytest.mark.parametrize("text", [*PLANTED, *LOOK_ALIKES])
def test_shortcuts_change_nothing_known(text: str) -> None:
    for before in GLUE:
        assert Redactor(KEY)(before + text) == without_shortcuts(before + text)


SHAPES = ("@", "cookie", "-u", "sig=", "mysql", "redis-cli", ":5432:")
PAIRED = (("|", "| sudo"), ("'", "identified by"), ('"', "identified by"))
WORDS = st.sampled_from(
    [
        *map(bytes.decode, (*NEEDLES, *NEEDLES_ASSIGNED)),
        *SHAPES,
        "| sudo",
        "identified by",
        *"qyw5-='\"|",
        "cre",
    ]
)


@given(st.lists(WORDS | st.text(alphabet="abcdekostuy w", max_size=4)).map("".join))
def test_no_text_is_skipped_that_holds_what_is_looked_for(text: str) -> None:
    assert may_name(text) == any(needle.decode() in text for needle in NEEDLES)
    assert may_assign(text) == ("=" in text and any(needle.decode() in text for needle in NEEDLES_ASSIGNED))
    paired = any(sign in text and word in text for sign, word in PAIRED)
    assert may_shape(text) == (paired or any(shape in text for shape in SHAPES))


@given(
    st.sampled_from(["", "Token", "mode", "my session", "def"]),
    st.text(alphabet=" \t\"'=:.\n\\n", max_size=12),
    st.text(alphabet="abcdefK9_-", min_size=20, max_size=40),
)
def test_a_plain_run_is_one_of_which_nothing_near_tells(word: str, between: str, run: str) -> None:
    data = f"{word}{between}{run}".encode()
    at = len(data) - len(run)
    asked = data[at - 1] in (secret_plain.ASKED_ESCAPED if b"\\" in data else secret_plain.ASKED)
    if secret_plain.PLAIN.match(data, at) and not (asked and secret_plain.telling(data, data.lower(), at)):
        assert secret_rules._near_run(data, data.lower(), at, len(data)) is None


@given(st.binary(min_size=15, max_size=15), st.booleans())
def test_readable_is_what_decodes_to_ascii(raw: bytes, ascii: bool) -> None:
    plain = bytes(byte & 127 for byte in raw) if ascii else raw
    assert readable(b"." + b64encode(plain), 1) == plain.isascii()
