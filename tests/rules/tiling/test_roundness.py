"""Round tiles are drawn more often, others now and then."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from ansorpy.rules.tiling.roundness import draw_round, round_weights
from ansorpy.schedule.decisions import Factors


def is_power(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = (numbers & (numbers - 1)) == 0
    return found


@pytest.mark.parametrize("extent", [4096, 196, 13])
def test_draws_are_rows_of_the_domain(extent: int, rng: np.random.Generator) -> None:
    domain = Factors(extent, 3, 32, "cover")
    drawn = draw_round(domain, 2000, rng)
    allowed = set(map(tuple, domain.rows.tolist()))
    assert set(map(tuple, drawn.tolist())) <= allowed
    share, whole = (is_power(rows).all(axis=1).mean() for rows in (drawn, domain.rows))
    assert share > 2 * whole or share > 0.5
    assert not is_power(drawn).all()


def test_tiles_that_divide_weigh_more() -> None:
    domain = Factors(60, 2, 64, "cover")
    weights = dict(zip(map(tuple, domain.rows.tolist()), round_weights(domain), strict=True))
    assert weights[1, 4] > weights[1, 16] > weights[1, 20] > weights[3, 5] > 0
