"""What a turn keeps is bounded and redacted before it is cut, saved or shown."""

from __future__ import annotations

import json
import random
import re
from collections import Counter

import pytest

from stages.split import Origin, open_splitter
from stages.wire import caps, tools
from tests.stages.wire_feed import ORIGIN, chunks_of, fold, keep
from tests.stages.wire_lines import V2, cli, cli_meta, line, meta, wire

SECRET = "sk-" + "a1B2" * 12
_SECRET = re.compile(r"sk-(?:a1B2)+")
STATE_LIMIT = 64 * 1024


def redact(text: str) -> str:
    return _SECRET.sub("[secret]", text)


def _words(rng: random.Random, size: int, alphabet: str = "etaoinshrdlu") -> str:
    words = ("".join(rng.choices(alphabet, k=rng.randint(2, 9))) for _ in range(size // 4))
    return " ".join(words)[:size]


def _big_turn(calls: int, alphabet: str) -> bytes:
    rng = random.Random(7)
    v2 = V2()
    records = [meta(), *v2.opened(0, _words(rng, 200_000, alphabet))]
    for n in range(calls):
        records += [v2.begin(0, n + 1), v2.say(0, _words(rng, 3_000, alphabet), n + 1)]
        args = {"path": f"src/{_words(rng, 12, alphabet)}.py", "content": _words(rng, 20_000, alphabet)}
        records.append(v2.call(0, f"w{n}", "Write", args, n + 1))
        records.append(v2.result(f"w{n}", _words(rng, 8_000, alphabet) + "\nError: no", isError=n % 2 == 0))
        records.append(v2.call(0, f"b{n}", "Bash", {"command": _words(rng, 900, alphabet)}, n + 1))
        records.append(v2.result(f"b{n}", _words(rng, 60_000, alphabet)))
        records.append(v2.end(0, n + 1))
    return wire(*records)


@pytest.mark.parametrize(
    "alphabet", ["etaoinshrdlu", "的一是不了在人有我他这为之大来以"], ids=["latin", "han"]
)
def test_the_state_of_a_huge_open_turn_is_small(alphabet: str) -> None:
    data = _big_turn(40, alphabet)
    folded = fold(data, cuts=range(20, 400, 40), resume=True)
    assert folded.largest_state <= STATE_LIMIT
    (turn,) = folded.list
    assert len(list(turn.tools)) == 80
    assert turn.user_text is not None and len(turn.user_text) <= sum(caps.PROMPT) + 60
    assert (
        sum(len(text) for step in turn.steps for text in step.texts)
        <= caps.AGENT_HEAD + caps.AGENT_TAIL + 200
    )


def test_first_and_last_texts_of_a_long_turn_stay() -> None:
    v2 = V2()
    answers = [f"answer {n} " + "x" * 3_000 for n in range(30)]
    records = [record for n, answer in enumerate(answers, 1) for record in v2.answer(0, answer, n)]
    (turn,) = fold(wire(meta(), *v2.opened(0, "go"), *records, v2.ended(0))).list
    texts = [text for step in turn.steps for text in step.texts]
    assert texts[:3] == answers[:3]
    assert texts[-4:] == answers[-4:]
    notes = [text for text in texts if re.fullmatch(r"…\[\d+ characters left out\]…", text)]
    left_out = int(re.sub(r"\D", "", notes[0]))
    assert len(notes) == 1
    assert left_out + sum(map(len, texts)) - len(notes[0]) == sum(map(len, answers))
    assert len(turn.steps) == 30


def test_clip_keeps_head_and_tail_and_says_what_is_missing() -> None:
    text = "a" * 50_000 + "b" * 50_000
    cut = caps.clip(text, 100, 50, keep)
    assert cut == "a" * 100 + "…[99850 characters left out]…" + "b" * 50
    assert caps.clip("short", 100, 50, keep) == "short"


@pytest.mark.parametrize("at", [*range(60, 125, 7), *range(8_240, 8_300, 5), 50_000, 99_940, 99_970])
def test_a_cut_never_leaves_part_of_a_secret(at: int) -> None:
    text = "." * at + SECRET + "." * (100_000 - at)
    for head, tail in ((100, 50), (50, 0)):
        assert "a1B2" not in caps.clip(text, head, tail, redact)
    assert "a1B2" not in tools.last_lines(text, redact)
    assert "a1B2" not in tools.decisive(text + "\nError: x", redact, caps.ERROR)


def test_many_secrets_in_the_margin_do_not_pull_a_partial_one_in() -> None:
    lead = caps.MARGIN + 100 - 30
    text = (
        (SECRET + " ") * (lead // (len(SECRET) + 1))
        + "." * (lead % (len(SECRET) + 1))
        + SECRET
        + "z" * 90_000
    )
    assert "a1B2" not in caps.clip(text, 100, 50, redact)


def test_spans_longer_than_the_margin_are_seen_whole() -> None:
    def private(text: str) -> str:
        return re.sub(r"<private>.*?</private>", "[private]", text, flags=re.DOTALL)

    text = "<private>" + "hidden " * 20_000 + "</private> the end"
    assert "hidden" not in caps.clip(text, 100, 50, private)
    assert "hidden" not in tools.last_lines(text, private)


def _secret_wire() -> bytes:
    v2 = V2()
    error = {"message": f"bad key {SECRET}"}
    return wire(
        meta(),
        *v2.opened(0, f"use {SECRET}"),
        v2.begin(0),
        v2.say(0, f"I use {SECRET}"),
        v2.call(0, "a", "Bash", {"command": f"curl -H {SECRET}", "description": SECRET}),
        v2.result("a", f"ok\n{SECRET}\n"),
        v2.call(
            0, "b", "Edit", {"path": f"/x/{SECRET}", "old_string": f"one\n{SECRET}", "new_string": "two"}
        ),
        v2.result("b", f"failed\n{SECRET}", isError=True),
        v2.call(
            0,
            "c",
            "Write",
            {"path": "y", "content": f"k\n{SECRET}"},
            display={"kind": "file_io", "operation": "write", "path": f"/{SECRET}"},
        ),
        v2.result("c", "done"),
        v2.steer(f"and {SECRET}", messageId="m", turnId=0),
        v2.compaction(summary=f"we used {SECRET}", keptUserMessageCount=1),
        v2.end(0),
        v2.message(f"later {SECRET}", origin={"kind": "task"}),
        v2.ended(0, "failed", error=error),
        v2.message(f"blocked {SECRET}", origin={"kind": "user"}),
        v2.steer(f"waiting {SECRET}"),
    )


def test_no_secret_reaches_a_turn_or_the_state() -> None:
    data = _secret_wire()
    splitter = open_splitter(data, ORIGIN, redact)
    for chunk in chunks_of(data, range(1, 30)):
        changes = [*splitter.feed(chunk), *splitter.provisional()]
        assert "a1B2" not in repr(changes)
        assert b"a1B2" not in splitter.state()
        from_state = open_splitter(b"", ORIGIN, redact, splitter.state())
        assert "a1B2" not in repr(from_state.provisional())
    (turn,) = fold(data, redact=redact).list
    assert turn.user_text == "use [secret]"
    assert turn.error == "bad key [secret]"
    assert next(turn.tools).command == "curl -H [secret]"
    assert json.loads(list(turn.tools)[1].args)["old_string"] == "one\n[secret]"
    assert json.loads(list(turn.tools)[2].args)["content"] == "k\n[secret]"


def test_no_secret_of_a_kimi_cli_wire_reaches_the_state() -> None:
    data = wire(
        cli_meta(),
        cli("TurnBegin", user_input=f"use {SECRET}"),
        cli("ToolCall", id="a", function={"name": "Shell", "arguments": json.dumps({"command": SECRET})}),
        cli("ToolCallPart", arguments_part=SECRET),
        cli(
            "ToolResult",
            tool_call_id="a",
            return_value={"is_error": True, "output": SECRET, "message": SECRET},
        ),
        cli("SteerInput", user_input=SECRET),
    )
    splitter = open_splitter(data, ORIGIN, redact)
    for chunk in chunks_of(data, range(1, 9)):
        assert "a1B2" not in repr([*splitter.feed(chunk), *splitter.provisional()])
        assert b"a1B2" not in splitter.state()


def test_each_kept_text_is_redacted_once() -> None:
    seen: Counter[str] = Counter()

    def counting(text: str) -> str:
        seen[text] += 1
        return text

    v2 = V2()
    data = wire(meta(), *v2.turn(0, "the prompt", "the answer"), *v2.turn(1, "another prompt", "more"))
    fold(data, redact=counting, cuts=[4], resume=True)
    assert seen == {"the prompt": 1, "the answer": 1, "another prompt": 1, "more": 1}


def test_errors_keep_their_decisive_lines() -> None:
    noise = [f"   Compiling crate-{n} v0.{n}" for n in range(900)]
    output = "\n".join(
        [*noise[:400], "error[E0308]: mismatched types", *noise[400:], "Command failed with exit code: 101."]
    )
    kept = tools.decisive(output, keep, caps.ERROR)
    assert "exit code: 101" in kept
    assert len(kept) <= caps.ERROR + 300
    short = "\x1b[31mTypeError\x1b[0m: x is not a function"
    assert tools.decisive(short, keep, caps.ERROR) == "TypeError: x is not a function"


def test_a_good_commands_last_lines_are_its_outcome() -> None:
    output = (
        "\n".join(f"tests/test_{n}.py ....." for n in range(500)) + "\n\x1b[32m312 passed\x1b[0m in 4.1s\n"
    )
    kept = tools.last_lines(output, keep)
    assert kept.endswith("312 passed in 4.1s")
    assert len(kept) <= caps.OUTCOME
    assert kept.startswith("tests/"), "begins with a whole line"
    assert tools.last_lines("just this", keep) == "just this"


def test_more_calls_than_the_cap_are_counted() -> None:
    v2 = V2()
    calls = [line(v2.call(0, f"c{n}", "Bash", {"command": "x"})) for n in range(caps.CALLS + 5)]
    folded = fold(wire(meta(), *v2.opened(0, "go"), v2.begin(0), *calls))
    assert folded.counts["turn-too-long"] == 5
    assert len(list(folded.list[0].tools)) == caps.CALLS


def test_anchors_are_all_that_grows_with_the_number_of_turns() -> None:
    v2 = V2()
    data = wire(meta(), *(record for n in range(300) for record in v2.turn(n, "p", "a")))
    splitter = open_splitter(data, Origin("s", "main"), keep)
    for chunk in chunks_of(data):
        splitter.feed(chunk)
    state = json.loads(splitter.state())
    assert len(splitter.state()) - len(json.dumps(state["anchors"])) < 2_000
