"""MutateAutoUnroll, MutateParallel and MutateVectorize redraw one column a row."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.rules.annotation.parallel import AnnotateParallel
from ansorpy.rules.annotation.unroll import AnnotateUnroll
from ansorpy.rules.annotation.vectorize import AnnotateVectorize
from ansorpy.rules.base import Mutation
from ansorpy.rules.mutation.auto_unroll import MutateAutoUnroll
from ansorpy.rules.mutation.parallel import MutateParallel
from ansorpy.rules.mutation.vectorize import MutateVectorize
from ansorpy.schedule.space import Space
from ansorpy.schedule.state import State
from tests import workloads
from tests.rules.asking import CPU


def opened() -> Space:
    space = Space(State.initial(workloads.softmax(2, 4, 8)))
    for rule in (AnnotateParallel(), AnnotateUnroll(), AnnotateVectorize()):
        space = rule.declare(space, CPU)
    return space


@pytest.mark.parametrize(
    ("mutation", "suffix", "always"),
    [
        (MutateAutoUnroll(), "max_unroll", False),
        (MutateParallel(), "parallel", True),
        (MutateVectorize(), "vectorize", True),
    ],
)
def test_one_column_of_the_kind_changes(
    mutation: Mutation, suffix: str, always: bool, rng: np.random.Generator
) -> None:
    space = opened()
    table = space.sample(400, rng)
    mutated = mutation.apply(space, table, rng)
    changed = mutated != table
    of_kind = np.array([name.endswith(suffix) for name in space.columns])
    assert not changed[:, ~of_kind].any()
    assert changed[:, of_kind].any(axis=0).all(), "every stage has its turn"
    assert set(changed.sum(axis=1)) == ({1} if always else {0, 1})
    domains = {d.name: d.domain for d in space.decisions}
    for k, name in enumerate(space.columns):
        assert np.isin(mutated[:, k], domains[name].rows).all()


def test_without_such_a_column_nothing_happens(rng: np.random.Generator) -> None:
    space = Space(State.initial(workloads.matmul(4, 4, 4)))
    table = space.sample(3, rng)
    for mutation in (MutateAutoUnroll(), MutateParallel(), MutateVectorize()):
        assert mutation.apply(space, table, rng) is table
