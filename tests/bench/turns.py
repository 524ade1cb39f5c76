"""What one generated turn says and does, and the needles that are planted in some of them."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from tests import wires
from tests.bench.vocabulary import Speech
from tests.wires import Call, Say, say

NeedleKind: TypeAlias = Literal[
    "user",
    "agent",
    "argument",
    "path",
    "command",
    "error",
    "chinese",
    "identifier",
    "flag",
    "phrase",
    "steer",
    "sub-agent",
]
KINDS: tuple[NeedleKind, ...] = (
    "user",
    "agent",
    "argument",
    "path",
    "command",
    "error",
    "chinese",
    "identifier",
    "flag",
    "phrase",
    "steer",
    "sub-agent",
)
_HAN_NEEDLES = ("饕餮", "麒麟", "琥珀", "貔貅", "魑魅", "踟蹰", "氤氲", "囹圄", "蹁跹", "旖旎")


# --- one turn ----------------------------------------------------------------------------------------------


def _read(speech: Speech, path: str) -> Call:
    """1–30 kB, most of them small."""
    lines = int(min(700, 24 + speech.rng.expovariate(1 / 30)))
    return wires.read(path, "\n".join(speech.code_lines(lines)))


def _bash(speech: Speech) -> Call:
    rng = speech.rng
    command = rng.choice(
        (
            f"pytest {speech.choice(speech.paths)} -k {speech.choice(speech.identifiers)}",
            f"git diff --stat {speech.choice(speech.paths)}",
            f"make {speech.words(1)[0]}",
            f"npm run {speech.words(1)[0]} -- --{'-'.join(speech.words(2))}",
            f"rg -n {speech.choice(speech.identifiers)} src | head -50",
        )
    )
    output = "\n".join(speech.log_lines(int(1 + rng.expovariate(1 / 4))))
    if rng.random() < 0.14:
        name = speech.choice(speech.identifiers)
        kind = rng.choice(("TypeError", "KeyError", "OSError", "ValueError", "AssertionError"))
        output += (
            f'\nTraceback (most recent call last):\n  File "app.py", line {rng.randrange(400)}, in {name}\n'
        )
        output += f"{kind}: {' '.join(speech.words(5))} {name}"
        return wires.bash(command, output, code=1)
    return wires.bash(command, output)


def _edit(speech: Speech, path: str) -> Call:
    lines = speech.code_lines(int(1 + speech.rng.expovariate(1 / 3)))
    return wires.edit(path, "\n".join(lines), "\n".join([*speech.code_lines(1), *lines[1:]]))


def _call(speech: Speech) -> Call:
    path, chance = speech.choice(speech.paths), speech.rng.random()
    if chance < 0.22:
        return _read(speech, path)
    if chance < 0.56:
        return _bash(speech)
    if chance < 0.84:
        return _edit(speech, path)
    if chance < 0.93:
        hits = "\n".join(f"{path}:{n * 7}:{line}" for n, line in enumerate(speech.code_lines(8)))
        return wires.grep(speech.choice(speech.identifiers), "src", hits)
    if chance < 0.97:
        return wires.write(path, "\n".join(speech.code_lines(int(8 + speech.rng.expovariate(1 / 20)))))
    return wires.todo(
        (speech.prose(1), "done"), (speech.prose(1), "in_progress"), (speech.prose(1), "pending")
    )


def says_of(speech: Speech) -> list[Say]:
    """The steps of one turn: a quarter answer at once, a few work for long."""
    rng = speech.rng
    steps = 0 if rng.random() < 0.2 else int(min(40, 1 + rng.expovariate(1 / 4.5)))
    says = []
    for _ in range(steps):
        calls = tuple(_call(speech) for _ in range(rng.choice((1, 1, 1, 1, 1, 2))))
        text = speech.sentence() if rng.random() < 0.6 else ""
        says.append(Say(text, calls, speech.prose(2) if rng.random() < 0.5 else ""))
    answer = speech.prose(int(2 + rng.expovariate(1 / 4)))
    if rng.random() < 0.3:
        answer += "\n\n" + "\n".join(f"- {speech.sentence()}" for _ in range(rng.randrange(2, 6)))
    says.append(Say(answer, (), speech.prose(1) if rng.random() < 0.4 else ""))
    return says


# --- needles -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Planted:
    """A turn with a needle in it, ready to be written."""

    queries: tuple[str, ...]
    text: str
    says: list[Say]
    steers: dict[int, str] | None = None
    agent: bool = False


def plant(kind: NeedleKind, ordinal: int, speech: Speech) -> Planted:
    """A turn that holds one needle of ``kind``. ``zorq…`` occurs in no generated word."""
    letters = "".join("bdfgklmnprtv"[(ordinal // 12**place) % 12] for place in range(4))
    word = f"zorq{letters}ik"
    text, says = speech.prose(2), says_of(speech)
    body = speech.prose(6)
    if kind == "user":
        return Planted((word,), f"{text} And {word} too? {speech.sentence()}", says)
    if kind == "agent":
        return Planted((word,), text, [say(f"{body} It is {word} after all. {body}"), *says])
    if kind == "argument":
        lines = speech.code_lines(9)
        lines[4] = f"    {word} = 1"
        return Planted((word,), text, [say("", wires.edit("src/app.py", "pass", "\n".join(lines))), *says])
    if kind == "path":
        path = f"src/{word}/handler_{letters}x.py"
        return Planted((path, word, f"handler_{letters}x"), text, [say("", _read(speech, path)), *says])
    if kind == "command":
        command = f"make {word}-check VERBOSE=1"
        return Planted((f"{word}-check", word), text, [say("", wires.bash(command, "ok")), *says])
    if kind == "error":
        trace = f"Traceback (most recent call last):\n  File \"app.py\", line 4, in main\nKeyError: '{word}'"
        output = "\n".join([*speech.log_lines(4), trace])
        return Planted((word,), text, [say("", wires.bash("python app.py", output, code=1)), *says])
    return _plant_named(kind, ordinal, word, Planted((), text, says), speech)


def _plant_named(kind: NeedleKind, ordinal: int, word: str, plain: Planted, speech: Speech) -> Planted:
    text, says = plain.text, plain.says
    if kind == "chinese":
        han = _HAN_NEEDLES[ordinal % len(_HAN_NEEDLES)]
        return Planted((han,), text, [say(f"这里的{han}模块需要先处理。{speech.prose(3)}"), *says])
    if kind == "identifier":
        name = f"fetch{word.capitalize()}Ledger"
        queries = (name, f"{word} ledger", f"fetch {word} ledger")
        return Planted(queries, text, [say(f"The call to `{name}()` is the slow one."), *says])
    if kind == "flag":
        flag = f"--only-{word}-sync"
        return Planted(
            (flag, f"only {word} sync"), text, [say("", wires.bash(f"app {flag}", "synced")), *says]
        )
    if kind == "phrase":
        return Planted((f'"seven {word} lanterns"',), f"{text} We said seven {word} lanterns.", says)
    if kind == "steer":
        first = say("Starting.", wires.bash("make all", "ok"))
        return Planted((word,), text, [first, *says], {1: f"but leave {word} as it is"})
    found = say(f"{speech.prose(3)} The culprit is {word}.")
    call = wires.agent(
        speech.sentence(), say("", _read(speech, "src/app.py")), found, description="Look around"
    )
    return Planted((word,), text, [say("A sub-agent looks.", call), *says], agent=True)
