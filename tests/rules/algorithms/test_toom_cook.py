"""The matrices of minimal filtering are exact, and their points the accurate ones."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from ansorpy.rules.algorithms.toom_cook import matrices

FORMS = [(2, 3), (4, 3), (3, 3), (6, 3), (3, 2), (5, 2), (2, 5), (4, 5), (1, 1), (1, 4)]


@pytest.mark.parametrize(("m", "r"), FORMS)
def test_they_filter_exactly(m: int, r: int) -> None:
    form = matrices(m, r)
    a, b, g = (np.array(x, dtype=object) for x in (form.a, form.b, form.g))
    assert (a.shape, b.shape, g.shape) == ((m, m + r - 1), (m + r - 1, m + r - 1), (m + r - 1, r))
    rng = np.random.default_rng(m * 10 + r)
    x = np.array([Fraction(int(v)) for v in rng.integers(-9, 10, m + r - 1)], dtype=object)
    w = np.array([Fraction(int(v)) for v in rng.integers(-9, 10, r)], dtype=object)
    want = [sum(w[k] * x[i + k] for k in range(r)) for i in range(m)]
    assert list(a @ ((g @ w) * (b @ x))) == want


def test_the_points_of_f_4_3_are_the_ones_of_the_smallest_error() -> None:
    assert set(map(abs, matrices(4, 3).points)) <= {0, 1, Fraction(1, 2), 2}
    spread = max(abs(float(c)) for row in matrices(4, 3).a for c in row)
    assert spread <= 8
    assert matrices(2, 3).growth < matrices(3, 3).growth < matrices(4, 3).growth


def test_too_many_points_are_refused() -> None:
    with pytest.raises(ValueError, match="points"):
        matrices(20, 3)
