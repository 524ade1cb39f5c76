"""Arguments in JSON: what is opened for the redactor is closed again byte for byte, and hides no secret."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.redact import Redactor
from stages.wire import tools
from tests.stages.planted_secrets import Planted, named_texts, provider_texts

REDACT = Redactor(b"a key of this test")


@given(st.text(alphabet='\\"\n\r\t\x1b\x01\x08\x0cnutrbf/A中') | st.text())
def test_what_is_opened_is_closed_again(text: str) -> None:
    dumped = orjson.dumps({"a": text}).decode()
    assert tools.close_escapes(tools.open_escapes(dumped)) == dumped


@pytest.mark.parametrize(
    "planted", [*provider_texts(22), *named_texts(22)], ids=lambda planted: planted.label
)
def test_no_argument_keeps_a_secret(planted: Planted) -> None:
    texts = [planted.text, f"a \\ b\n{planted.text}", f'"C:\\Users"\n{planted.text}\n']
    if "\n" not in planted.text:
        texts.append(orjson.dumps({"body": planted.text}).decode())
    for text in texts:
        kept, _ = tools.compact("Write", {"path": "a", "content": text}, room="full", redact=REDACT)
        assert [secret for secret in planted.secrets if secret in kept] == []
        assert orjson.loads(kept)["path"] == "a"
