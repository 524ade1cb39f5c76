"""Homes full of damage, with healthy sessions among it: what a real disk hands over after crashes and copies.

``write(root, sizes)`` gives what must come out of it: the healthy turns, all of them, and no exception.
"""

import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests import wires
from tests.wires import say

CWD = "/home/dev/garbage"
AT = 1_796_033_702_000


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes of the giants: ``QUICK`` for every run, ``FULL`` as the benchmark demands."""

    line: int
    turn: int


QUICK = Sizes(line=6 * 1024 * 1024, turn=3 * 1024 * 1024)
FULL = Sizes(line=300 * 1024 * 1024, turn=100 * 1024 * 1024)


@dataclass(frozen=True, slots=True)
class Garbage:
    """What ``write`` left: ``healthy`` are session ids with three good turns each, ``damaged`` those with at
    least one good turn, ``hopeless`` the folders in which nothing can be read.
    """

    healthy: tuple[str, ...]
    damaged: tuple[str, ...]
    hopeless: tuple[str, ...]


def _good(home: wires.Home, name: str) -> wires.Session:
    """Three turns; the name is the word by which they are found."""
    session = home.session(CWD, at=AT, title=name, session_id=f"session_{name}")
    for number in range(3):
        ask = f"{name} question {number}"
        call = wires.edit(f"src/{name}.py", "old = 1", f"new = {number}")
        session.main.turn(ask, say("Let me see.", call), say(f"{name} answer {number}: done."), gap=60_000)
    return session


def _path(session: wires.Session) -> Path:
    return session.folder / "agents" / "main" / "wire.jsonl"


def _lines(session: wires.Session) -> list[bytes]:
    return session.main.data().splitlines(keepends=True)


# --- damage to a good file: takes its lines, gives its bytes ------------------------------------------------


def truncated(lines: list[bytes], rng: random.Random) -> bytes:
    """Cut inside its last third, in the middle of a line."""
    data = b"".join(lines)
    return data[: len(data) * 2 // 3 + rng.randrange(200)]


def bit_flipped(lines: list[bytes], rng: random.Random) -> bytes:
    """One byte in 2,000 of the second half is another one."""
    data = bytearray(b"".join(lines))
    for _ in range(len(data) // 4_000):
        data[rng.randrange(len(data) // 2, len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def interleaved(lines: list[bytes], rng: random.Random) -> bytes:
    """Two writers' lines torn into each other after the first turn, as before 0.40 (WIRE §3)."""
    half = len(lines) // 2
    torn = []
    for line in lines[half:]:
        cut = rng.randrange(len(line))
        torn.append(line[:cut] + line if rng.random() < 0.3 else line)
    return b"".join([*lines[:half], *torn])


def binary_tail(lines: list[bytes], rng: random.Random) -> bytes:
    """A good file with a block of noise behind its first turn, line ends and zero bytes included."""
    half = len(lines) // 2
    return b"".join([*lines[:half], rng.randbytes(40_000), b"\n\x00\x00\x00\n", *lines[half:]])


ODD = (
    b"[]\n",
    b"null\n",
    b"42\n",
    b'"text"\n',
    b"\n",
    b"  \n",
    b"{}\n",
    b'{"type":7}\n',
    b'{"type":"x"}\n',
    b'{"type":"turn.prompt"}\n',
    b'{"type":"turn.prompt","input":3,"origin":[],"turnId":"x"}\n',
    b'{"type":"context.append_message","message":7}\n',
    b'{"type":"context.append_loop_event","event":null}\n',
    b'{"type":"context.append_loop_event","event":{"type":"step.begin","turnId":[]}}\n',
    b'{"type":"context.undo","count":"two"}\n',
    b'{"type":"turn.ended","turnId":null}\n',
    b'{"type":"usage.record","usage":[]}\n',
    b"\xef\xbb\xbf{}\n",
    b'{"type":"x","t":"\\ud83d"}\n',
)


def odd_lines(lines: list[bytes], rng: random.Random) -> bytes:
    """JSON that is no record, blank lines, carriage returns, a byte order mark, lone surrogates."""
    half = len(lines) // 2
    return b"".join([*lines[:half], *ODD, *(line.replace(b"\n", b"\r\n") for line in lines[half:])])


DAMAGES: tuple[Callable[[list[bytes], random.Random], bytes], ...] = (
    truncated,
    bit_flipped,
    interleaved,
    binary_tail,
    odd_lines,
)


# --- giants ------------------------------------------------------------------------------------------------


def giant_line(path: Path, lines: list[bytes], size: int) -> None:
    """A good file with one line of ``size`` bytes, a tool result, in its middle. Written in blocks."""
    half = len(lines) // 2
    head = b'{"type":"context.append_loop_event","agentId":"main","event":{"type":"tool.result",'
    head += b'"parentUuid":"u","toolCallId":"call_giant","result":{"output":"'
    with path.open("wb") as file:
        file.writelines(lines[:half])
        file.write(head)
        block = b"all work and no play " * 50_000
        for _ in range(max(1, size // len(block))):
            file.write(block)
        file.write(b'","durationMs":1}},"time":1796033702000}\n')
        file.writelines(lines[half:])


def giant_turn(session: wires.Session, size: int) -> None:
    """One more turn of ``size`` bytes, in steps of some 60 kB."""
    text = "giant turn output line\n" * 1_200
    steps = max(1, size // 60_000)
    says = [say(f"step {number}", wires.bash("make", text)) for number in range(steps)]
    session.main.turn("giant turn question", *says, say("giant turn answer"), gap=60_000)


# --- the home ----------------------------------------------------------------------------------------------


def write(root: Path, sizes: Sizes = QUICK, *, seed: int = 0, fifo: bool = True) -> Garbage:
    """Writes the home. ``fifo`` false leaves the named pipe out (where the platform has none)."""
    rng = random.Random(f"garbage {seed}")
    home = wires.Home(root, seed=seed)
    healthy = [_good(home, f"healthy{number}") for number in range(4)]
    damaged = [_good(home, damage.__name__.replace("_", "")) for damage in DAMAGES]
    line, turn = _good(home, "giantline"), _good(home, "giantturn")
    giant_turn(turn, sizes.turn)
    empty = [_good(home, name) for name in ("empty", "noise", "folder", "pipe", "onlyhalf")]
    home.write()
    for damage, session in zip(DAMAGES, damaged, strict=True):
        _path(session).write_bytes(damage(_lines(session), rng))
    giant_line(_path(line), _lines(line), sizes.line)
    _ruin(empty, rng, fifo)
    _strays(root, healthy[0])
    return Garbage(_ids(healthy), _ids([*damaged, line, turn]), _ids(empty))


def _ids(sessions: list[wires.Session]) -> tuple[str, ...]:
    return tuple(session.session_id for session in sessions)


def _ruin(sessions: list[wires.Session], rng: random.Random, fifo: bool) -> None:
    """An empty wire, pure noise, a directory, a named pipe, and a first line without its end."""
    empty, noise, folder, pipe, half = (_path(session) for session in sessions)
    empty.write_bytes(b"")
    noise.write_bytes(rng.randbytes(300_000))
    folder.unlink()
    folder.mkdir()
    pipe.unlink()
    if fifo:
        os.mkfifo(pipe)
    half.write_bytes(b'{"type":"metadata","protocol_ver')


def _strays(root: Path, session: wires.Session) -> None:
    """What lies about in homes and must not be read (WIRE §2): copies, temporary files, odd state files."""
    wire = _path(session)
    wire.with_name("wire.jsonl.bak").write_bytes(wire.read_bytes())
    wire.with_name("wire.jsonl.tmp.4242.0a1b2c3d").write_bytes(wire.read_bytes()[:900])
    bucket = session.folder.parent
    (bucket / "session_nostate" / "agents" / "main").mkdir(parents=True)
    (bucket / "session_nowire").mkdir()
    (bucket / "session_nowire" / "state.json").write_text("{}", encoding="utf-8")
    (bucket / "session_badstate").mkdir()
    (bucket / "session_badstate" / "state.json").write_bytes(b"\x00\xff{not json")
    (root / "sessions" / "a-file").write_text("not a bucket", encoding="utf-8")
    dots = root / "sessions" / ".index-dirty"
    dots.mkdir()
    (dots / f"{session.session_id}.1796033702375").write_bytes(b"")
