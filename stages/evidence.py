"""What a refined turn offers as evidence of a subject: weighted terms, and how rare each is in the corpus.

A bag maps a term to a weight in 0..1. Terms are search tokens (``stages.tokens``) and typed entities
(``file:src/a.py``, ``symbol:listen``). Words the person wrote weigh most, the refiner's sentences next, the
agent's prose less, pasted logs least: a paste names everything that was on the screen.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from stages import tokens
from stages.model import RefinedTurn

OWN_CHARS = 600
PASTE_CHARS = 1_500
ANSWER_CHARS = 3_000

OWN_WEIGHT = 1.0
GIST_WEIGHT = 0.855
WRITTEN_WEIGHT = 0.7
ENTITY_WEIGHT = 0.4
ANSWER_WEIGHT = 0.197
PASTE_WEIGHT = 0.15
SPAN_WEIGHT = 0.283

BACKGROUND = 150

GIST_ROOM = 60
ANSWER_ROOM = 60
ENTITY_ROOM = 40
SPAN_ROOM = 12
"""Terms up to which a text speaks at full weight; a longer one names more in passing, so each mention says
less.
"""

STRIDES = (7, 13, 19, 31)
UNLIKE, UNLIKE_PAIRS = 0.007, 60
"""Similarity of strangers in ordinary talk, worth as many pairs: a small corpus may be all about one thing."""

_ENTITY_WEIGHTS = {
    "file": 0.4,
    "symbol": 0.5,
    "command": 0.4,
    "error": 0.5,
    "url": 0.5,
    "package": 0.7,
    "issue": 0.7,
}

NARRATION = frozenset(
    tokens.tokens(
        "edited edit wrote write updated update added add created create implemented implement fixed fix removed"
        " remove deleted changed change pasted output done works working stopped ran run runs running tests test"
        " testing passed pass passes failed fails committed commit pushed push merged shipped deployed ship"
        " lint linting linter plan file files code app project feature question current new old now still only"
        " py js ts tsx jsx md json toml yaml yml css html sql src lib"
        " pytest npm git grep bash python node npx pnpm yarn cargo make"
        " 修改了 修改 已加 已改 改为 改成 改好了 提交 已提交 添加 新增 运行 测试 通过 问题 文件 代码 功能 现在 这个 可以"
        " 决定 因为 不用 没有 还是 已经 建议"
    )
)
"""Words of telling and of any work, in the index's form: they name no subject."""
NARRATION_RARITY = 0.2

_CODE_SPAN = re.compile(r"(?<!`)`([^`\n]{2,60})`(?!`)")
_LOG_LINE = re.compile(
    r"""^\s*(?:
        [➜❯$>%✗✓⨯●▲╭│╰×+•|{}\[\]<]            # prompts, boxes, brackets
      | at\s+\S+.*[:(]\d+                       # stack frames
      | (?:npm|yarn|pnpm|error|warn|info|debug|trace)\b[\s:!]
      | \[?\d{4}-\d\d-\d\d[T\s]                 # timestamps
      | \[?\d\d:\d\d:\d\d
      | \d+\s*[|:│→]                            # numbered listings
      | (?:Traceback|[A-Za-z.]*(?:Error|Exception)\b:)
      | [-=_*~─═]{3,}
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_NOT_WORDS = re.compile(
    r"^\s*(?:<[a-z-]+>.*</[a-z-]+>\s*)+$|^\s*\[Request interrupted[^\]]*\]\s*$", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Stats:
    """Document frequencies of terms over the corpus: in how many of ``turns`` turns a term occurs."""

    turns: int
    frequency: Mapping[str, int]
    local: Mapping[str, int] = field(default_factory=dict)
    ground: float = 0.0
    """How similar two turns are that have nothing to do with one another."""
    _rarities: dict[str, float] = field(default_factory=dict, compare=False, repr=False)
    _norms: dict[int, tuple[Mapping[str, float], float]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def times(self, term: str) -> int:
        """In how many turns a term occurs; for a term that the corpus does not count, at least in how
        many.
        """
        return self.frequency.get(term) or self.local.get(term, 0)

    def rarity(self, term: str) -> float:
        """Normalised idf: 1 for a term of one turn, about 0 for a term of all.

        BACKGROUND turns of other talk are imagined beside the corpus: in a small one a theme may well be
        half of it, which makes its words frequent but not common.
        """
        known = self._rarities.get(term)
        if known is None:
            whole = self.turns + BACKGROUND
            times = max(1, self.times(term))
            known = math.log((whole + 1) / (times + 0.5)) / math.log((whole + 1) / 1.5)
            if term.rpartition(":")[2] in NARRATION:
                known *= NARRATION_RARITY
            self._rarities[term] = known
        return known

    def norm(self, bag: Mapping[str, float]) -> float:
        """The length of a bag under rarity; remembered, with the bag so that its id stays its own."""
        held = self._norms.get(id(bag))
        if held is None:
            rarity = self.rarity
            held = (bag, math.sqrt(sum((weight * rarity(term)) ** 2 for term, weight in bag.items())))
            self._norms[id(bag)] = held
        return held[1]


@dataclass(frozen=True, slots=True)
class Evidence:
    """One turn's evidence.

    ``own`` are the distinct content terms in the person's own words (paste left out), ``told`` those of the
    summary.
    """

    turn: RefinedTurn
    bag: Mapping[str, float]
    own: frozenset[str] = field(default_factory=frozenset)
    own_text: str = ""
    told: frozenset[str] = field(default_factory=frozenset)


def parted(text: str) -> tuple[str, str]:
    """A person's message as ``(own words, pasted lines)``: everything after the first two log lines is
    paste.
    """
    if _NOT_WORDS.match(text):
        return "", ""
    own: list[str] = []
    paste: list[str] = []
    logs = 0
    for line in text.splitlines():
        if logs >= 2 or _LOG_LINE.match(line):
            logs += 1
            paste.append(line)
        else:
            own.append(line)
    return "\n".join(own)[:OWN_CHARS], "\n".join(paste)[:PASTE_CHARS]


def content_terms(text: str) -> list[str]:
    """Tokens that can carry a subject: no stop words, no bare numbers, no single characters."""
    return [
        term
        for term in tokens.tokens(text)
        if len(term) > 1 and not term.isdigit() and term not in tokens.STOP_WORDS
    ]


def evidence(turn: RefinedTurn) -> Evidence:
    """The weighted bag of one turn."""
    own_text, paste = parted(turn.user_text)
    own = content_terms(own_text)
    gist = " \n".join((turn.refined.summary, *(fact.text for fact in turn.refined.facts)))
    entities = turn.refined.entities
    amounts: Counter[str] = Counter()
    _add(amounts, own, OWN_WEIGHT)
    _add(amounts, content_terms(gist), GIST_WEIGHT, room=GIST_ROOM)
    _add(amounts, content_terms(turn.answer[:ANSWER_CHARS]), ANSWER_WEIGHT, room=ANSWER_ROOM)
    spans = " ".join(_CODE_SPAN.findall(f"{own_text}\n{turn.answer[:ANSWER_CHARS]}"))
    _add(amounts, content_terms(spans), SPAN_WEIGHT, room=SPAN_ROOM, most=2)
    _add(amounts, content_terms(paste), PASTE_WEIGHT)
    _add(amounts, content_terms(" ".join(entities.files_written)), WRITTEN_WEIGHT, room=ENTITY_ROOM, most=1)
    _add(
        amounts,
        content_terms(" ".join((*entities.files_read, *entities.commands))),
        ENTITY_WEIGHT,
        room=ENTITY_ROOM,
    )
    written = frozenset(entities.files_written)
    for kind, value in entities.pairs():
        if kind != "tool":
            weight = WRITTEN_WEIGHT if value in written else _ENTITY_WEIGHTS.get(kind, ENTITY_WEIGHT)
            amounts[f"{kind}:{value}"] += weight  # type: ignore[assignment]
    bag = {term: round(saturate(amount), 4) for term, amount in sorted(amounts.items())}
    return Evidence(turn, bag, frozenset(own), own_text, frozenset(content_terms(turn.refined.summary)))


def saturate(amount: float) -> float:
    """Many mentions say little more than a few: 1 → 0.67, 3 → 0.86."""
    return amount / (amount + 0.5)


def count(everything: Iterable[Evidence]) -> Stats:
    """Statistics of the turns at hand, for when no corpus statistics were given."""
    frequency: Counter[str] = Counter()
    turns = 0
    for item in everything:
        turns += 1
        frequency.update(item.bag.keys())
    return Stats(turns, frequency)


def blended(corpus: Stats | None, items: Sequence[Evidence]) -> Stats:
    """Corpus statistics, completed by counts of the turns at hand for terms that the corpus does not count
    (entities); those counts alone when there are no statistics, or older ones of fewer turns.
    """
    if corpus is not None and corpus.local:
        return corpus
    local = count(items)
    stats = local
    if corpus is not None and corpus.turns >= local.turns:
        stats = Stats(corpus.turns, corpus.frequency, local.frequency)
    return replace(stats, local=local.frequency, ground=_ground(items, stats))


def _ground(items: Sequence[Evidence], stats: Stats) -> float:
    """The mean similarity of turns of different sessions, a fixed sample; UNLIKE where there are few."""
    pairs = [
        similarity(left.bag, right.bag, stats)
        for apart in STRIDES
        for left, right in zip(items, items[apart:], strict=False)
        if left.turn.key.session_id != right.turn.key.session_id
    ]
    return (sum(pairs) + UNLIKE_PAIRS * UNLIKE) / (len(pairs) + UNLIKE_PAIRS)


def similarity(left: Mapping[str, float], right: Mapping[str, float], stats: Stats) -> float:
    """Cosine of two bags under squared rarity: shared rare terms count, shared common ones hardly."""
    if len(left) > len(right):
        left, right = right, left
    dot = sum(
        weight * right[term] * stats.rarity(term) ** 2 for term, weight in left.items() if term in right
    )
    if not dot:
        return 0.0
    return dot / (stats.norm(left) * stats.norm(right))


def _add(
    amounts: Counter[str], terms: Sequence[str], weight: float, room: int | None = None, most: int = 4
) -> None:
    if room is not None and len(terms) > room:
        weight *= math.sqrt(room / len(terms))
    for term, times in Counter(terms).items():
        amounts[term] += weight * min(times, most)  # type: ignore[assignment]
