"""What a theme must beat: every turn with a seed, and bm25's best forty."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from stages import tokens
from tests.quality.themes.corpus import CorpusTurn
from tests.quality.themes.labels import Key

BEST = 40
K1, B = 1.2, 0.75


def key_of(turn: CorpusTurn) -> Key:
    key = turn.refined.key
    return key.session_id, key.agent_id, key.turn_id


def text_of(turn: CorpusTurn) -> str:
    """Everything of a turn that the index holds."""
    each = turn.document
    return "\n".join((each.user, each.agent, each.actions, each.errors))


def any_seed(seeds: Sequence[str], turns: Sequence[CorpusTurn]) -> set[Key]:
    """Every turn that holds all tokens of some seed, anywhere."""
    wanted = [frozenset(tokens.tokens(seed)) for seed in seeds]
    return {
        key_of(turn) for turn in turns if any(w and w <= set(tokens.tokens(text_of(turn))) for w in wanted)
    }


def bm25(seeds: Sequence[str], turns: Sequence[CorpusTurn], best: int = BEST) -> set[Key]:
    """The best turns by bm25 over the same tokens; the query is the seeds' tokens, ORed."""
    query = sorted({token for seed in seeds for token in tokens.tokens(seed)})
    counts = [Counter(tokens.tokens(text_of(turn))) for turn in turns]
    lengths = [sum(count.values()) for count in counts]
    mean = sum(lengths) / max(1, len(lengths))
    spread = {token: sum(token in count for count in counts) for token in query}
    scored = []
    for turn, count, length in zip(turns, counts, lengths, strict=True):
        score = 0.0
        for token in query:
            if count[token]:
                idf = math.log(1 + (len(turns) - spread[token] + 0.5) / (spread[token] + 0.5))
                score += idf * count[token] * (K1 + 1) / (count[token] + K1 * (1 - B + B * length / mean))
        if score > 0:
            scored.append((-score, key_of(turn)))
    return {key for _, key in sorted(scored)[:best]}
