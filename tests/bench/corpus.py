"""A seeded home of sessions in the shape of CLI 2.1.0, of any size: ``generate`` and ``queries``.

    python -m tests.bench.corpus --root /tmp/corpus --megabytes 300 --sessions 200 --seed 1

At the default size: about 8,000 turns of some 38 kB and 60 records, 15 % of the bytes in tool lists and
system prompts. ``manifest.json`` beside the sessions says what is in them, with needles at known turns.
"""

import argparse
import json
import random
import re
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from tests import wires
from tests.bench.turns import KINDS, NeedleKind, plant, says_of
from tests.bench.vocabulary import Speech, Vocabulary
from tests.wires import Session, Wire, say

WORKSPACE = "/home/dev/work/atlas"
OTHERS = ("/home/dev/work/billing", "/home/dev/site", "/home/dev/工具箱", "/home/dev/work/old-importer")
HOUR = 3_600_000
START = 1_767_225_600_000
"""2026-01-01T00:00:00Z."""

EACH = 5
"""Needles of each kind."""

_WORD = re.compile(r"\b[a-z]{4,}\b")
_NAME = re.compile(r"`(\w+)`")
_HAN = re.compile(r"[\u4e00-\u9fff]{6,}")


@dataclass(frozen=True, slots=True)
class Needle:
    """Something planted once: each of ``queries`` must find the turn."""

    kind: NeedleKind
    queries: tuple[str, ...]
    session_id: str
    agent_id: str
    turn_id: int


@dataclass(frozen=True, slots=True)
class Expected:
    """What a session holds: turns by agent (copies included), and the undone ones of main."""

    session_id: str
    cwd: str
    turns: dict[str, int]
    copies: dict[str, int]
    undone: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What ``generate`` wrote. ``rare``, ``identifiers``, ``chinese`` and ``sentences`` occur in live turns
    of ``WORKSPACE``; ``common`` is the most frequent word."""

    seed: int
    bytes: int
    records: int
    sessions: tuple[Expected, ...]
    needles: tuple[Needle, ...]
    rare: tuple[str, ...]
    identifiers: tuple[str, ...]
    chinese: tuple[str, ...]
    sentences: tuple[str, ...]
    common: str

    @property
    def turns(self) -> int:
        return sum(sum(session.turns.values()) for session in self.sessions)

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), ensure_ascii=False, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> "Manifest":
        data = json.loads(path.read_text(encoding="utf-8"))
        data["sessions"] = tuple(
            Expected(**{**one, "undone": tuple(one["undone"])}) for one in data["sessions"]
        )
        data["needles"] = tuple(
            Needle(**{**one, "queries": tuple(one["queries"])}) for one in data["needles"]
        )
        for name in ("rare", "identifiers", "chinese", "sentences"):
            data[name] = tuple(data[name])
        return cls(**data)


# --- one session -------------------------------------------------------------------------------------------


class _Writer:
    """Fills one session up to a number of bytes."""

    def __init__(self, session: Session, speech: Speech, needles: list[tuple[NeedleKind, int]]) -> None:
        self.session = session
        self.wire: Wire = session.main
        self.speech = speech
        self.rng = speech.rng
        self.needles = needles
        self.planted: list[Needle] = []
        self.undone: list[int] = []
        self.asked: list[tuple[int, str]] = []
        self._undoable = 0  # plain user turns at the end, free of needles

    def fill(self, budget: int) -> None:
        size = seen = 0
        while size < budget or self.needles:
            self._next()
            size += sum(len(line) for line in self.wire.lines[seen:])
            seen = len(self.wire.lines)

    def _next(self) -> None:
        gap = int(self.rng.expovariate(1 / 90_000)) + 4_000
        chance = self.rng.random()
        if self.needles and self.wire.turns >= 2 and chance < 0.5:
            self._needle(gap)
        elif chance < 0.02 and self._undoable >= 2:
            self.undone += self.wire.undo(self.rng.choice((1, 1, 2)), gap=gap)
            self._undoable = 0
        elif chance < 0.03:
            self.wire.restart(gap=4 * HOUR)
        elif chance < 0.04 and self.wire.turns > 8:
            self.wire.compact(self.speech.prose(6))
            self._undoable = 0
        else:
            self._plain(gap)

    def _needle(self, gap: int) -> None:
        kind, ordinal = self.needles.pop()
        made = plant(kind, ordinal, self.speech)
        turn = self.wire.turn(made.text, *made.says, steers=made.steers, gap=gap)
        agent = f"agent-{len(self.session.wires) - 2}" if made.agent else "main"
        number = 0 if made.agent else turn
        self.planted.append(Needle(kind, made.queries, self.session.session_id, agent, number))
        self._undoable = 0

    def _plain(self, gap: int) -> None:
        speech, chance = self.speech, self.rng.random()
        text = speech.prose(self.rng.choice((1, 1, 1, 2, 3)))
        says = says_of(speech)
        if chance < 0.02:
            self.wire.turn(text, *says[:-1], say(speech.sentence()), outcome="cancelled", gap=gap)
        elif chance < 0.03:
            self.wire.turn(text, *says[:-1], outcome="failed", error="429 rate limit reached", gap=gap)
        elif chance < 0.036:
            self.wire.turn(text, say("On it.", wires.bash("make all", None)), outcome="killed", gap=gap)
            self.wire.restart(gap=HOUR)
        elif chance < 0.05:
            find = wires.agent(text, *says_of(speech)[-3:], description="Explore")
            self.wire.turn(text, say("A sub-agent looks.", find), *says, gap=gap)
        elif chance < 0.07 and len(says) > 1:
            self.wire.turn(text, *says, steers={1: speech.sentence()}, gap=gap)
        else:
            turn = self.wire.turn(text, *says, gap=gap)
            self.asked.append((turn, text))
            self._undoable += 1
            return
        self._undoable = 0


# --- the whole home ----------------------------------------------------------------------------------------


def _forks(index: int) -> bool:
    return index % 20 == 19


class _Corpus:
    """The run of ``generate``: sessions are made, written and let go one at a time."""

    def __init__(self, root: Path, seed: int, sessions: int) -> None:
        self.seed = seed
        self.rng = random.Random(f"corpus {seed}")
        self.vocabulary = Vocabulary(seed)
        self.home = wires.Home(root, seed=seed, bulk=wires.bulk(tools=78_000, prompt=20_000))
        self.plans = self._plans(sessions)
        self.expected: list[Expected] = []
        self.needles: list[Needle] = []
        self.asked: list[str] = []
        self.bytes = 0
        self.records = 0

    def _plans(self, sessions: int) -> dict[int, list[tuple[NeedleKind, int]]]:
        """Which session gets which needles: ``EACH`` of every kind, spread over the first workspace's."""
        holders = [index for index in range(sessions) if not _forks(index)]
        plans: dict[int, list[tuple[NeedleKind, int]]] = {}
        for ordinal in range(EACH * len(KINDS)):
            kind = KINDS[ordinal % len(KINDS)]
            plans.setdefault(self.rng.choice(holders), []).append((kind, ordinal))
        return plans

    def session(self, index: int, budget: int) -> None:
        """One session of about ``budget`` bytes; every 20th is shared with a fork of it."""
        plan = self.plans.get(index, [])
        cwd = WORKSPACE if plan or self.rng.random() < 0.8 else self.rng.choice(OTHERS)
        speech = Speech(self.vocabulary, random.Random(f"session {self.seed} {index}"))
        title = " ".join(speech.words(4)) if index % 2 else None
        session = self.home.session(cwd, at=START + index * 20 * HOUR, title=title)
        forks = _forks(index)
        writer = _Writer(session, speech, list(plan))
        writer.fill(budget // 3 if forks else budget)
        self._keep(writer, {})
        if forks:
            copies = {agent: wire.turns for agent, wire in session.wires.items()}
            twin = _Writer(session.fork(session.main.now + HOUR), speech, [])
            twin.undone = list(writer.undone)
            twin.fill(budget // 3)
            self._keep(twin, copies)

    def _keep(self, writer: _Writer, copies: dict[str, int]) -> None:
        session = writer.session
        self.bytes += session.write()
        self.records += sum(len(wire.lines) for wire in session.wires.values())
        turns = {agent: wire.turns for agent, wire in session.wires.items()}
        undone = tuple(sorted(set(writer.undone)))
        self.expected.append(Expected(session.session_id, session.cwd, turns, copies, undone))
        self.needles += writer.planted
        if session.cwd == WORKSPACE:
            self.asked += [text for turn, text in writer.asked if turn not in writer.undone]

    def manifest(self) -> Manifest:
        rank = {word: number for number, word in enumerate(self.vocabulary.words)}
        texts = self.rng.sample(self.asked, min(600, len(self.asked)))
        rare = {word for text in texts for word in _WORD.findall(text) if rank.get(word, 0) > 4_000}
        names = {name for text in texts for name in _NAME.findall(text)}
        han = {
            run[:size] for text in texts for run, size in zip(_HAN.findall(text), (2, 4, 3, 6), strict=False)
        }
        return Manifest(
            seed=self.seed,
            bytes=self.bytes,
            records=self.records,
            sessions=tuple(self.expected),
            needles=tuple(self.needles),
            rare=tuple(sorted(rare)),
            identifiers=tuple(sorted(names)),
            chinese=tuple(sorted(han)),
            sentences=tuple(sorted(text for text in texts if text.isascii())),
            common=self.vocabulary.words[0],
        )


def _shares(rng: random.Random, sessions: int, size: int) -> list[int]:
    """Bytes by session, log-normal, at least a few turns each."""
    weights = [rng.lognormvariate(0, 0.7) for _ in range(sessions)]
    return [max(150_000, int(size * weight / sum(weights))) for weight in weights]


def generate(root: Path, *, seed: int, sessions: int = 200, megabytes: int = 300) -> Manifest:
    """Writes a KIMI_CODE_HOME of about ``megabytes`` (10⁶ bytes) to ``root``; same arguments, same bytes.

    A small corpus is larger than asked: each session holds at least 150 kB, and every needle has its place.
    """
    corpus = _Corpus(root, seed, sessions)
    for index, budget in enumerate(_shares(corpus.rng, sessions, megabytes * 1_000_000)):
        corpus.session(index, budget)
        for session in corpus.home.sessions[-2:]:
            session.wires = {"main": session.main}
            session.main.lines.clear()
    corpus.home.write_indexes()
    manifest = corpus.manifest()
    manifest.save(root / "manifest.json")
    return manifest


# --- queries -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Query:
    kind: Literal["rare", "question", "identifier", "chinese", "miss"]
    text: str


def queries(manifest: Manifest, seed: int, count: int) -> list[Query]:
    """The mix of a person's queries: 35 % one rare word, 25 % a question of three to eight words, 15 % an
    identifier, 15 % Chinese, 10 % words that occur nowhere."""
    rng = random.Random(f"queries {seed}")
    kinds = rng.choices(("rare", "question", "identifier", "chinese", "miss"), (35, 25, 15, 15, 10), k=count)
    return [_query(kind, manifest, rng) for kind in kinds]


def _query(kind: str, manifest: Manifest, rng: random.Random) -> Query:
    if kind == "rare":
        return Query("rare", rng.choice(manifest.rare))
    if kind == "question":
        words = [word for word in rng.choice(manifest.sentences).split() if word.isalpha()]
        size = rng.randrange(3, 9)
        start = rng.randrange(max(1, len(words) - size))
        return Query("question", " ".join(words[start : start + size]).lower())
    if kind == "identifier":
        return Query("identifier", rng.choice(manifest.identifiers))
    if kind == "chinese":
        return Query("chinese", rng.choice(manifest.chinese))
    return Query("miss", "qwx" + "".join(rng.choices("bcdfghjkvwxz", k=6)))


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a seeded home of sessions for benchmarks.")
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--megabytes", type=int, default=300)
    options = parser.parse_args()
    began = time.perf_counter()
    made = generate(options.root, seed=options.seed, sessions=options.sessions, megabytes=options.megabytes)
    seconds = time.perf_counter() - began
    about = f"{made.bytes / 1e6:.1f} MB, {len(made.sessions)} sessions, {made.turns} turns, "
    about += f"{made.records} records"
    print(f"{about}, {made.bytes / made.turns / 1e3:.1f} kB a turn, {made.bytes / 1e6 / seconds:.0f} MB/s")


if __name__ == "__main__":
    main()
