"""Tiramisu's network: trees of loops, speed-ups, and no influence of other programs of a batch."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed; make test-torch installs it")

from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.neural.loop_tree import Node, tree_of
from ansorpy.cost.neural.tiramisu import Tiramisu
from ansorpy.cost.neural.training import Fitting
from ansorpy.cost.programs import Programs
from ansorpy.schedule.state import State
from tests.cost.nests import Given, tiled_matmul
from tests.cost.neural.spaces import drawn, learned, seconds_of, task_of


def test_it_predicts_speed_ups_of_programs_it_has_not_seen() -> None:
    task = task_of()
    model = learned(Tiramisu(hidden=24, fitting=Fitting(examples=5120)), n=256)
    [speed] = AnalyticModel().predict(task, Programs.of(State.initial(task.dag)))
    programs = drawn(task, 100, 2)
    true = 1 / speed / seconds_of(programs)
    found = model.predict(task, programs)
    assert np.mean(np.abs(found - true) / true) < 0.3


def test_a_program_scores_the_same_beside_larger_trees() -> None:
    task = task_of()
    model = learned(Tiramisu(hidden=24, fitting=Fitting(examples=80)), n=40)
    small = Programs.of(State.initial(task.dag))
    nest = tiled_matmul(64, 64, 64, i1=2, i2=2, j1=2, j2=8, k1=4)
    features = [model.encode(task, p)[0] for p in (small, Given(nest, 1))]
    assert len(features[1]) > len(features[0])
    together, alone = model.score(features, task.key), model.score(features[:1], task.key)
    np.testing.assert_allclose(together[0], alone[0], rtol=1e-5)


def test_trees_share_the_loops_around_several_statements() -> None:
    model, nest = Tiramisu(), tiled_matmul(64, 64, 64, i1=2, i2=2, j1=2, j2=8, k1=4)
    [rows] = model.encode(task_of(), Given(nest, 1))
    tree = tree_of(rows)
    assert [_shape(loop) for loop in tree.loops] == [_chain(8), _chain(2)]


def _shape(node: Node) -> object:
    return [*map(_shape, node.loops), *["statement" for _ in node.statements]]


def _chain(depth: int) -> object:
    found: object = ["statement"]
    for _ in range(depth - 1):
        found = [found]
    return found
