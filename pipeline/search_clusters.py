"""Clusters around hits: what belongs to the same discussion, by pauses and by what the turns speak of."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.answers import HitCluster
from pipeline.search_request import SearchRequest
from pipeline.store.conditions import Key
from pipeline.store.search import Place, Ranking, TurnSearch

CONTINUITY = 20
"""A pause up to this many times the cluster gap does not part two turns that both speak of the query."""
SIZE_MOST = 60


def clusters_around(
    index: TurnSearch, hits: Sequence[Place], ranking: Ranking, request: SearchRequest
) -> list[HitCluster]:
    """Runs of turns around the hits: neighbours in time, or with a pause where both speak of the query."""
    speaking = {turn.place.key for turn in ranking.turns if any(share > 0 for share in turn.shares)}
    size = max(1, min(request.max_cluster_size, SIZE_MOST))
    taken: set[Key] = set()
    hit_keys = {place.key for place in hits}
    found = []
    for place in hits:
        if place.key in taken:
            continue
        members = _run_around(place, index.neighbours(place, size - 1), speaking, request, size)
        taken.update(member.key for member in members)
        found.append(
            HitCluster(
                place.session_id,
                place.agent_id,
                tuple(member.turn_id for member in members),
                tuple(member.turn_id for member in members if member.key in hit_keys),
                members[0].at,
                members[-1].last_at or members[-1].at,
            )
        )
    return found


def _run_around(
    place: Place, near: Sequence[Place], speaking: set[Key], request: SearchRequest, size: int
) -> list[Place]:
    """``place`` and what continues it on both sides, at most ``size`` turns, nearest first."""
    at = next((number for number, other in enumerate(near) if other.key == place.key), None)
    if at is None:  # it is shown elsewhere by now
        return [place]
    low = high = at
    grew = True
    while grew and high - low + 1 < size:
        grew = False
        if low > 0 and _continues(near[low - 1], near[low], speaking, request):
            low, grew = low - 1, True
        full = high - low + 1 >= size or high + 1 >= len(near)
        if not full and _continues(near[high], near[high + 1], speaking, request):
            high, grew = high + 1, True
    return list(near[low : high + 1])


def _continues(earlier: Place, later: Place, speaking: set[Key], request: SearchRequest) -> bool:
    if earlier.at is None or later.at is None:
        return True
    pause = later.at - (earlier.last_at or earlier.at)
    gap = request.cluster_gap_seconds * 1000
    both = earlier.key in speaking and later.key in speaking
    return pause <= gap or (both and pause <= gap * CONTINUITY)
