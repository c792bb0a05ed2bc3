"""Domains reduced to some rows, and the nearest rows in them."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.schedule.decisions import LONGEST_RAGGED, Factors, OneOf, cut, nearest


def test_a_cut_domain_has_the_kept_rows_and_no_others() -> None:
    whole = Factors(24, 2)
    small = cut(whole, [(4, 2), (1, 1), (2, 12)])
    assert small.rows.tolist() == [[1, 1], [2, 12], [4, 2]]
    assert small != whole
    assert cut(OneOf((0, 16, 64, 512)), [(512,), (0,)]) == OneOf((0, 512))


@pytest.mark.parametrize("kept", [[], [(5, 1)], [(1, 1), (24, 2)]])
def test_what_is_kept_must_be_there(kept: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="are not rows of"):
        cut(Factors(24, 2), kept)


def test_nearest_is_the_row_itself_where_it_is_kept(rng: np.random.Generator) -> None:
    domain = Factors(360, 3)
    rows = domain.rows[rng.integers(len(domain.rows), size=40)]
    assert (nearest(domain, rows) == rows).all()


def test_nearest_goes_by_ratios() -> None:
    domain = cut(Factors(64, 2), [(1, 1), (8, 1), (8, 8)])
    wanted = np.array([[16, 1], [2, 1], [4, 16], [1, 2]])
    assert nearest(domain, wanted).tolist() == [[8, 1], [1, 1], [8, 8], [1, 1]]


def test_nearest_other_than_a_row() -> None:
    domain = cut(Factors(64, 2), [(1, 1), (8, 1), (8, 8)])
    present = np.array([[8, 1], [1, 1]])
    assert nearest(domain, present, other_than=present).tolist() == [[1, 1], [8, 1]]
    only = cut(Factors(64, 2), [(8, 1)])
    assert nearest(only, present, other_than=present).tolist() == [[8, 1], [8, 1]]


@pytest.mark.parametrize("tail", ["shift", "peel", "even"])
@pytest.mark.parametrize("extent", [50_257, 1_000_000, 1 << 20])
def test_long_axes_have_no_more_rows_than_a_population_is_compared_with(
    extent: int, tail: str
) -> None:
    rows = Factors(extent, 3, tail=tail).rows
    assert len(rows) < 60_000
    tiles = rows.prod(axis=1)
    assert set(Factors(extent, 3).rows.prod(axis=1)) <= set(tiles)
    assert ((tiles <= LONGEST_RAGGED) | (extent % tiles == 0)).all()
    assert (extent % tiles != 0).any()
