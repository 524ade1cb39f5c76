"""Subjects nobody named: discussions that recur across sessions, with a name and seed keywords to start from.

A session is cut into discussions where its thread breaks; discussions of different sessions that share rare
terms are joined (average link over an inverted index, so that thousands stay affordable). ``suggest_seeds``
answers the first run of a theme without keywords.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from stages.aggregate import Place, has_substance, in_order, is_candidate, place
from stages.continuity import link
from stages.evidence import Evidence, Stats, blended, evidence, similarity
from stages.expansion import expand
from stages.model import RefinedTurn
from stages.seeds import normal, prepare, strength
from stages.surface import Surfaces

MAX_SUGGESTIONS = 12
MAX_SEEDS = 5
BREAK = 0.5
"""Below this link a new discussion begins."""
JOIN = 0.07
"""Similarity from which two groups of discussions are one subject."""
TERMS = 20
"""Terms by which a discussion is found and compared."""
COMMON = 0.08
"""Terms of more than this share of the discussions (and more than 8) do not bring two together."""
NARRATION = frozenset(
    re.findall(
        r"\w+",
        "edited wrote updated added created implemented fixed removed pasted output done works working stopped ran run"
        " tests test passed commit committed plan file files code app project change changes feature question current"
        " 修改了 修改 已加 已改 改为 提交 已提交 添加 新增 运行 测试 问题 文件 代码 功能 现在 这个 可以",
    )
)
"""Words of telling and of any work, which name no subject."""
MIN_TURNS, MIN_ALONE = 3, 6
"""Turns of a subject across sessions, and of one that came back within a single session."""
NAMED = 0.5
"""A subject with this share of its turns in existing themes has a name already."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A recurring subject: a name, seed keywords, where it occurs, and how much it is worth (higher is
    better).
    """

    name: str
    seeds: tuple[str, ...]
    turns: tuple[Place, ...]
    sessions: int
    start: int
    end: int
    weight: float


@dataclass(frozen=True, slots=True)
class _Discussion:
    items: tuple[Evidence, ...]
    bag: Mapping[str, float]


def suggest_seeds(turns: Sequence[RefinedTurn], name: str, *, stats: Stats | None = None) -> tuple[str, ...]:
    """Seed keywords for a theme of this name: its own words where they occur, then what keeps them company.

    Empty when nothing of the name occurs anywhere; the caller may then show what ``discover`` finds.
    """
    items = [evidence(turn) for turn in in_order(turns) if is_candidate(turn)]
    counted = blended(stats, items)
    words = [word for word in normal(name).split(" ") if word]
    seeds = prepare(words, items, counted)
    heard = {
        index: sum(seed.reliability * strength(seed, item, counted) for seed in seeds)
        for index, item in enumerate(items)
    }
    best = sorted((index for index in heard if heard[index] > 0), key=lambda index: (-heard[index], index))[
        :12
    ]
    if not best:
        return ()
    surfaces = Surfaces([items[index].turn for index in best])
    own = [seed.text for seed in seeds if any(strength(seed, items[index], counted) > 0 for index in best)]
    known = frozenset(term for seed in seeds for term in seed.terms)
    company = expand(items, {index: heard[index] for index in best}, counted, known)
    ranked = sorted(company.weights.items(), key=lambda pair: (-pair[1], pair[0]))
    return _distinct([*own, *surfaces.of(term for term, _ in ranked)])[: MAX_SEEDS + 1]


def _distinct(texts: Sequence[str]) -> tuple[str, ...]:
    """Texts without those that another one contains, repeats or inflects (``logger``, ``logging``)."""
    kept: list[str] = []
    for text in texts:
        plain = normal(text)
        if plain and plain not in NARRATION and not any(_alike(plain, normal(other)) for other in kept):
            kept.append(text)
    return tuple(kept)


def _alike(left: str, right: str) -> bool:
    if left in right or right in left:
        return True
    return left.isascii() and len(left) >= 5 and left[:5] == right[:5]


def discover(
    turns: Sequence[RefinedTurn],
    *,
    named: Collection[frozenset[Place]] = (),
    stats: Stats | None = None,
    limit: int = MAX_SUGGESTIONS,
) -> list[Suggestion]:
    """Recurring subjects, best first: at least two sessions, or one long discussion taken up again later.

    ``named`` are the turns of existing themes; subjects that they cover are left out.
    """
    items = [evidence(turn) for turn in in_order(turns) if is_candidate(turn)]
    counted = blended(stats, items)
    discussions = [found for found in _discussions(items, counted) if found.bag]
    subjects = _join(discussions, counted)
    found = []
    for group in subjects:
        suggestion = _suggestion([discussions[index] for index in group], counted)
        if suggestion is not None and not _has_name(suggestion, named):
            found.append(suggestion)
    found.sort(key=lambda each: (-each.weight, each.name))
    return _named_once(found)[:limit]


def _discussions(items: Sequence[Evidence], stats: Stats) -> list[_Discussion]:
    found: list[_Discussion] = []
    for _, group in groupby(items, key=lambda item: place(item.turn.key)[:2]):
        run: list[Evidence] = []
        for item in group:
            if run and link(run, item, stats) < BREAK:
                found.append(_discussion(run, stats))
                run = []
            if has_substance(item):
                run.append(item)
        if run:
            found.append(_discussion(run, stats))
    return found


def _discussion(run: Sequence[Evidence], stats: Stats) -> _Discussion:
    """Its terms by mean weight and rarity; a term of a single turn in a long discussion is left to that
    turn.
    """
    total: defaultdict[str, float] = defaultdict(float)
    times: Counter[str] = Counter()
    for item in run:
        for term, weight in item.bag.items():
            total[term] += weight
            times[term] += 1
    need = 1 if len(run) < 3 else 2
    usable = {
        term: weight / len(run) for term, weight in total.items() if times[term] >= need and _tells(term)
    }
    best = sorted(usable, key=lambda term: (-usable[term] * stats.rarity(term), term))[:TERMS]
    return _Discussion(tuple(run), {term: usable[term] for term in best})


def _tells(term: str) -> bool:
    return ":" in term or not ("/" in term or "." in term)


def _join(discussions: Sequence[_Discussion], stats: Stats) -> list[list[int]]:
    """Groups of discussions about one subject: greedy average link, the most alike pair first."""
    posting: defaultdict[str, list[int]] = defaultdict(list)
    for index, discussion in enumerate(discussions):
        for term in discussion.bag:
            posting[term].append(index)
    room = max(8, int(COMMON * len(discussions)))
    pairs: dict[tuple[int, int], float] = {}
    for term in sorted(posting):
        where = posting[term]
        if len(where) > room:
            continue
        for position, left in enumerate(where):
            for right in where[position + 1 :]:
                pairs.setdefault((left, right), -1.0)
    alike = {
        (left, right): similarity(discussions[left].bag, discussions[right].bag, stats)
        for left, right in pairs
    }
    group_of = list(range(len(discussions)))
    groups: dict[int, list[int]] = {index: [index] for index in group_of}
    for (left, right), value in sorted(alike.items(), key=lambda pair: (-pair[1], pair[0])):
        if value < JOIN:
            break
        a, b = group_of[left], group_of[right]
        if a != b and _average(groups[a], groups[b], alike) >= JOIN:
            groups[a] += groups.pop(b)
            for index in groups[a]:
                group_of[index] = a
    return [sorted(group) for _, group in sorted(groups.items())]


def _average(left: Sequence[int], right: Sequence[int], alike: Mapping[tuple[int, int], float]) -> float:
    total = sum(alike.get((min(a, b), max(a, b)), 0.0) for a in left for b in right)
    return total / (len(left) * len(right))


def _suggestion(group: Sequence[_Discussion], stats: Stats) -> Suggestion | None:
    items = [item for discussion in group for item in discussion.items]
    sessions = {item.turn.key.session_id for item in items}
    if len(group) < 2 or len(items) < (MIN_TURNS if len(sessions) > 1 else MIN_ALONE):
        return None
    shared: defaultdict[str, float] = defaultdict(float)
    for discussion in group:
        for term, weight in discussion.bag.items():
            shared[term] += weight
    in_groups = Counter(term for discussion in group for term in discussion.bag)
    ranked = sorted(
        (term for term in shared if in_groups[term] >= min(2, len(group))),
        key=lambda term: (-shared[term] * stats.rarity(term) ** 2 * in_groups[term] ** 0.5, term),
    )
    surfaces = Surfaces([item.turn for item in items])
    words = _distinct(surfaces.of(ranked))
    if not words:
        return None
    spots = tuple(sorted(place(item.turn.key) for item in items))
    cohesion = sum(shared[term] * stats.rarity(term) for term in ranked[:6])
    return Suggestion(
        name="-".join(normal(word).replace(" ", "-") for word in words[:2]),
        seeds=words[:MAX_SEEDS],
        turns=spots,
        sessions=len(sessions),
        start=min(item.turn.timestamp for item in items),
        end=max(item.turn.timestamp for item in items),
        weight=round(cohesion * len(sessions) ** 0.5 * min(len(items), 30) ** 0.5 / len(group) ** 0.5, 3),
    )


def _has_name(suggestion: Suggestion, named: Collection[frozenset[Place]]) -> bool:
    spots = frozenset(suggestion.turns)
    return any(len(spots & theme) >= NAMED * len(spots) for theme in named)


def _named_once(found: Sequence[Suggestion]) -> list[Suggestion]:
    seen: set[str] = set()
    kept = []
    for each in found:
        if each.name not in seen:
            seen.add(each.name)
            kept.append(each)
    return kept
