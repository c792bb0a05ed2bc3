"""Random populations of one small nest, and a machine unlike the analytic one to time them."""

from __future__ import annotations

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.cost.boosted import BoostedTrees
from ansorpy.cost.programs import Programs
from ansorpy.schedule.tables.size import Column
from tests.cost.nests import Given, tiled_matmul
from tests.cost.tasks import matmul_task

__all__ = ["SHAPE", "population", "trained", "true_seconds"]

SHAPE = (64, 64, 64)


def population(n: int, seed: int) -> tuple[Programs, dict[str, Column]]:
    rng = np.random.default_rng(seed)

    def pick(*values: int) -> Column:
        return Column(rng.choice(values, n))

    columns = {name: pick(1, 2, 4, 8) for name in ("i1", "i2", "j1", "k1")}
    columns |= {"j2": pick(1, 4, 8), "vector": pick(0, 1), "max_unroll": pick(0, 16, 512)}
    return Given(tiled_matmul(*SHAPE, **columns), n), columns


def true_seconds(columns: dict[str, Column]) -> Floats:
    """A machine unlike the analytic one: likes tall tiles and short inner reductions."""
    i2, k1, vector = (columns[c].values for c in ("i2", "k1", "vector"))
    seconds: Floats = 1e-3 * (1 + 8 / i2) * (1 + 0.3 * k1) * (1 + 2 * (vector == 0))
    return seconds


def trained(seed: int = 0) -> BoostedTrees:
    model = BoostedTrees()
    programs, columns = population(128, seed)
    seconds = true_seconds(columns)
    seconds[::9] = np.inf
    model.learn(matmul_task(*SHAPE), programs, seconds)
    model.refit()
    return model
