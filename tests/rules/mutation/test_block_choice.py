"""MutateBlockChoice: one plain choice of a row changes, unroll limits and tiles stay."""

from __future__ import annotations

import numpy as np

from ansorpy.rules.mutation.block_choice import MutateBlockChoice
from ansorpy.schedule.decisions import OneOf
from tests import workloads
from tests.rules.gpu_spaces import annotated


def test_one_choice_of_every_row_changes(rng: np.random.Generator) -> None:
    space = annotated(workloads.matmul(64, 64, 64))
    table = space.sample(200, rng)
    mutated = MutateBlockChoice().apply(space, table, rng)
    assert ((table != mutated).sum(axis=1) == 1).all()
    changed = {space.columns[k] for k in np.flatnonzero((table != mutated).any(axis=0))}
    choices = {d.name for d in space.decisions if isinstance(d.domain, OneOf)}
    assert changed == choices - {"C.local.max_unroll"}
    assert space.within(mutated).all()


def test_without_choices_nothing_changes(rng: np.random.Generator) -> None:
    space = annotated(workloads.min_reduce(1, 5))
    table = space.sample(4, rng)
    assert np.array_equal(MutateBlockChoice().apply(space, table, rng), table)
