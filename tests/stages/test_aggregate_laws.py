"""Laws of the aggregator: determinism, order, and that no run undoes what a person did."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from stages.aggregate import Curation, Place, aggregate, place
from stages.model import RefinedTurn
from tests.stages.dialogues import Said, session

WORDS = st.sampled_from(
    [
        "port",
        "EADDRINUSE",
        "server.ts",
        "fallback",
        "端口",
        "被占用",
        "commit",
        "it",
        "还是报错",
        "palette",
        "invoice",
        "VAT",
        "token",
        "cache",
        "main.go",
        "why",
    ]
)
SAID = st.builds(
    lambda user, answer, files: Said(" ".join(user), " ".join(answer), tuple(files)),
    st.lists(WORDS, min_size=0, max_size=6),
    st.lists(WORDS, min_size=0, max_size=6),
    st.lists(st.sampled_from(["src/server.ts", "web/palette.css", "main.go"]), max_size=2),
)
SESSIONS = st.lists(st.lists(SAID, min_size=1, max_size=6), min_size=1, max_size=4)
SEEDS = st.lists(WORDS, min_size=1, max_size=3)


def turns_of(sessions: list[list[Said]]) -> list[RefinedTurn]:
    return [turn for number, said in enumerate(sessions) for turn in session(f"s{number}", said, day=number)]


@settings(max_examples=60, deadline=None)
@given(SESSIONS, SEEDS, st.randoms(use_true_random=False))
def test_order_of_input_and_repeats_do_not_matter(
    sessions: list[list[Said]], seeds: list[str], rng: random.Random
) -> None:
    found = turns_of(sessions)
    shuffled = [*found, *found[:2]]
    rng.shuffle(shuffled)
    assert aggregate("t", seeds, shuffled) == aggregate("t", seeds, found)


@settings(max_examples=60, deadline=None)
@given(SESSIONS, SEEDS, st.sets(st.integers(0, 23)), st.sets(st.integers(0, 23)), st.sets(st.integers(0, 23)))
def test_curated_turns_are_always_in_or_out(
    sessions: list[list[Said]], seeds: list[str], pins: set[int], tags: set[int], excluded: set[int]
) -> None:
    found = turns_of(sessions)

    def places(chosen: set[int]) -> frozenset[Place]:
        return frozenset(place(found[index].key) for index in chosen if index < len(found))

    curation = Curation(tagged=places(tags), pinned=places(pins), excluded=places(excluded))
    theme = aggregate("t", seeds, found, curation=curation)
    inside = {place(pointer.key) for pointer in theme.pointers}
    assert (curation.tagged | curation.pinned) - curation.excluded <= inside
    assert not inside & curation.excluded
    in_clusters = [(c.session_id, c.agent_id, position) for c in theme.clusters for position in c.positions]
    assert sorted(in_clusters) == sorted(inside)
    assert all(0.0 <= pointer.score <= 1.0 for pointer in theme.pointers)
    assert {pointer.via for pointer in theme.pointers if place(pointer.key) in curation.tagged} <= {"tagged"}


@settings(max_examples=30, deadline=None)
@given(SESSIONS, SEEDS)
def test_pointers_are_in_time_order_and_removed_seeds_stay_away(
    sessions: list[list[Said]], seeds: list[str]
) -> None:
    found = turns_of(sessions)
    theme = aggregate("t", [*seeds, "zebra"], found, curation=Curation(removed_seeds=frozenset({"zebra"})))
    times = [pointer.timestamp for pointer in theme.pointers]
    assert times == sorted(times)
    assert "zebra" not in theme.seeds and len(set(theme.seeds)) == len(theme.seeds)
    assert theme == aggregate("t", seeds, found)
