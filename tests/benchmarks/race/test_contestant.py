"""Contestants: the default search with one part exchanged, by name."""

from __future__ import annotations

import pytest

from ansorpy.api.parts import PARTS
from ansorpy.errors import UsageError
from benchmarks.race.contestant import ANSOR, COMPANIONS, KINDS, Contestant, contestants

DEFAULT = Contestant.default()


def test_names_are_read_back() -> None:
    assert Contestant.parse(ANSOR.name) == ANSOR
    found = Contestant.parse("random:top_k")
    assert found.parts == DEFAULT.parts | {"strategy": "random", "selector": "top_k"}
    with pytest.raises(UsageError, match="'a:b:c:d:e' is not STRATEGY:SELECTOR:COST_MODEL:SCHED"):
        Contestant.parse("a:b:c:d:e")
    with pytest.raises(UsageError, match='unknown cost model "none"'):
        Contestant.parse("random:top_k:none")


@pytest.mark.parametrize("kind", KINDS)
def test_every_registered_part_races_alone(kind: str) -> None:
    racing = contestants(kind)
    assert racing[0] == DEFAULT and ANSOR in racing
    assert {one.parts[kind] for one in racing} == set(PARTS[kind])
    assert len(set(racing)) == len(racing)
    for one in racing:
        others = {k for k in KINDS if k != kind and one.parts[k] != DEFAULT.parts[k]}
        assert others <= set(COMPANIONS.get((kind, one.parts[kind]), {})) or one == ANSOR
        assert one.is_of(kind) or one == ANSOR


def test_parts_and_hybrids_can_be_chosen() -> None:
    racing = contestants("strategy", ["random", "grid:top_k"])
    assert {one.strategy for one in racing} == {DEFAULT.strategy, ANSOR.strategy, "random", "grid"}
    hybrid = Contestant.parse("grid:top_k")
    assert hybrid in racing and hybrid.is_of("strategy") and not hybrid.is_of("selector")
    assert hybrid.label("strategy") == "grid:top_k"
    assert DEFAULT.label("selector") == f"{DEFAULT.selector} (default)"
    with pytest.raises(UsageError, match='unknown selector "random"'):
        contestants("selector", ["random"])
