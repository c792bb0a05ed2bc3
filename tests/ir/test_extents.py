"""Extents against plain integers: the same operations at random sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import integers

from ansorpy.errors import UsageError
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import as_expr, size_var
from ansorpy.ir.extents import (
    AnyExtent,
    Extent,
    dim,
    dims_of,
    extreme,
    least,
    most,
    multiple_of,
    prod_of,
)
from ansorpy.ir.interpret.evaluate import Evaluator, Frame
from ansorpy.ir.interpret.numerics import Value
from ansorpy.ir.sizes import at, at_most, fixed
from ansorpy.ir.symbols import Dim, SizeOp
from ansorpy.ir.text.extents import extent_data, extent_of
from tests.budget import examples

N, M = Dim("n", 1, 512), Dim("m", 0, 40, 4)


class Loadless(Evaluator):
    def load(self, source: object, indices: object, frame: Frame, mask: object) -> Value:
        raise AssertionError("an extent loads nothing")


class Drawn:
    """The same random expression over two leaves, each time it is built."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def of(self, n: Extent, m: Extent) -> AnyExtent:
        self.rng = np.random.default_rng(self.seed)
        return self._build(n, m, int(self.rng.integers(1, 4)))

    def _build(self, n: Extent, m: Extent, depth: int) -> Extent:
        number = int(self.rng.integers(-3, 10))
        if not depth:
            return (n, m, number)[int(self.rng.integers(3))]
        a, b = self._build(n, m, depth - 1), self._build(n, m, depth - 1)
        match int(self.rng.integers(8)):
            case 0:
                return a + b
            case 1:
                return a - b
            case 2:
                return a * number
            case 3:
                return a // (abs(number) + 1)
            case 4:
                return a % (abs(number) + 1)
            case 5:
                return extreme(SizeOp.MIN, a, b)
            case 6:
                return extreme(SizeOp.MAX, a, b)
        return a * b


@examples(300)
@given(seed=integers(0, 2**32 - 1))
def test_an_expression_is_what_its_numbers_give(seed: int) -> None:
    drawn, rng = Drawn(seed), np.random.default_rng(seed)
    extent = drawn.of(dim("n", 1, 512), dim("m", 0, 40, step=4))
    assert extent_of(extent_data(extent)) == extent
    for _ in range(8):
        n, m = int(rng.integers(1, 513)), 4 * int(rng.integers(0, 11))
        want = drawn.of(n, m)
        assert at(extent, {N: n, M: m}) == want, (extent, n, m)
        assert least(extent) <= want <= most(extent), (extent, n, m)
        divisor = multiple_of(extent)
        assert want == 0 if divisor == 0 else want % divisor == 0, (extent, n, m)
        frame = Frame({size_var(N): n, size_var(M): m})
        assert Loadless(wide=False).value(as_expr(extent, DType.INT64), frame) == want


def test_what_a_tile_needs_to_know_is_decided() -> None:
    n = dim("n", 16, 512)
    tiles = -(-n // 16)
    assert str(tiles) == "(n + 15)//16"
    assert (least(tiles * 16 - n), most(tiles * 16 - n)) == (0, 15)
    assert extreme(SizeOp.MIN, n, 16) == 16
    assert -((-tiles) // 8) == (n + 127) // 128
    assert prod_of([n, n]) // n == n


def test_sums_divide_what_they_are_factors_of() -> None:
    n, m = dim("n", 1, 512), dim("m", 4, 40, step=4)
    rows = (n + 1) // 2 + 3
    assert rows * m * 8 // rows == m * 8 and rows * (n + m) % (n + m) == 0
    assert ((n + m) * (n - m) * 6 + (n + m) * 2) // (n * 2 + m * 2) == 3 * n - 3 * m + 1
    assert str((n * m + 1) // (n + m)) == "(m*n + 1)//(m + n)"


def test_equal_quotients_have_one_form() -> None:
    n = dim("n", 1, 512)
    assert (n - 1) // 2 + 1 == (n + 1) // 2 == -(-n // 2)
    assert ((n - 1) // 2 + 1 - 1) // 2 + 1 == (n + 3) // 4


def test_a_step_makes_divisions_exact() -> None:
    w = dim("w", 320, 1280, step=32)
    assert w // 32 * 32 == w and -(-w // 32) == w // 32
    assert w % 8 == 0 and multiple_of(w * 3) == 96


def test_quotients_without_remainder_have_one_form() -> None:
    h, w, n = dim("h", 32, 1280, step=32), dim("w", 32, 1280, step=32), dim("n", 1, 32)
    assert str((h // 2) * (w // 2)) == str((h * w) // 4) == "(h//4)*w"
    image = n * (h // 4) * (w // 4) * 24
    assert image % 24 == 0 and image // (w // 4) // (h // 4) // n == 24
    assert n * (h // 16) * w * 4 // (w // 2) == n * h // 2
    assert (h // 32) * (w // 2) + (h // 32) * (w // 8) == 5 * h * w // 256
    assert (h + w) // 8 == h // 8 + w // 8 and 2 // (h // 4) == 0
    assert multiple_of(h // 2) == 16 and (h // 2) // 8 * 16 == h


@examples(100)
@given(seed=integers(0, 2**32 - 1))
def test_images_of_multiples_are_what_their_numbers_give(seed: int) -> None:
    """Products and quotients of sizes that are multiples, in random order."""
    h, w = Dim("h", 32, 256, 32), Dim("w", 8, 64, 8)

    def drawn(a: Extent, b: Extent) -> AnyExtent:
        rng = np.random.default_rng(seed)
        made: AnyExtent = 1
        for _ in range(int(rng.integers(2, 6))):
            part = (a, b, a // 2, b // 4, a // 32, b // 8, int(rng.integers(1, 5)))
            made = made * part[int(rng.integers(7))]
            made = made // int(rng.choice([1, 1, 2, 3])) + int(rng.choice([0, 0, 2]))
        return made // (b // 2) if rng.random() < 0.5 else made

    extent = drawn(dim("h", 32, 256, step=32), dim("w", 8, 64, step=8))
    for high, wide in ((32, 8), (96, 40), (256, 64)):
        want = drawn(high, wide)
        assert at(extent, {h: high, w: wide}) == want
        assert least(extent) <= want <= most(extent)


def test_products_that_depend_on_each_other_have_exact_bounds() -> None:
    n, m = dim("n", 1, 9), dim("m", 0, 5)
    every = [a * b - a - b + 1 for a in range(1, 10) for b in range(6)]
    assert (least(n * m - n - m + 1), most(n * m - n - m + 1)) == (min(every), max(every))
    h, w = dim("h", 32, 1280, step=32), dim("w", 32, 1280, step=32)
    assert least((h // 32) * (w // 2) - h // 2 - w // 2 + 16) == 0


def test_powers_are_bounded_from_the_least_sizes() -> None:
    """A square image without its border has no negative number of pixels."""
    h, n = dim("h", 2, 512), dim("n", 1, 64)
    assert least((h - 2) * (h - 2) * n) == 0
    assert least((h - 2) * (h - 2) * n * 8 + h) == 2
    assert most(h - (h - 2) * (h - 2)) >= 2
    for low in (1, 2, 3, 7):
        side = dim("side", low, 9)
        every = [(s - 3) * (s - 3) * (s + 1) for s in range(low, 10)]
        bound = least((side - 3) * (side - 3) * (side + 1))
        assert bound <= min(every) and (low < 3 or bound == min(every))


def test_a_dimension_of_one_size_is_a_number() -> None:
    assert dim("n", 7, 7) == 7


@pytest.mark.parametrize(
    ("low", "high", "step", "why"),
    [
        (-1, 4, 1, "an end of the range of n must be a whole number of at least 0, got -1"),
        (5, 4, 1, "range"),
        (1, 4, 0, "the step of n must be a whole number of at least 1, got 0"),
        (3, 8, 4, "multiples of 4"),
        (1, 1 << 63, 1, "beyond the largest size"),
        (1, "8", 1, "an end of the range of n must be a whole number of at least 0, got '8'"),
        (1.5, 8, 1, "an end of the range of n must be a whole number"),
        (1, 8, None, "the step of n must be a whole number of at least 1, got None"),
    ],
)
def test_impossible_ranges_are_refused(low: Any, high: Any, step: Any, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        dim("n", low, high, step=step)


def test_a_dimension_is_made_of_numbers_and_a_text() -> None:
    [made] = dims_of([dim("n", 1, cast(Any, np.int64(8)))])
    assert made == Dim("n", 1, 8) and type(made.high) is int
    with pytest.raises(UsageError, match="the name of a dimension is a text, got 3"):
        dim(cast(Any, 3), 1, 8)


def test_a_size_that_is_not_chosen_is_no_number() -> None:
    n = dim("n", 1, 8)
    with pytest.raises(UsageError, match=r"n \* 2|2\*n") as caught:
        fixed(n * 2)
    assert caught.value.hint == "choose sizes first, with dag_at or program_at: n=1..8"
    asked: list[Callable[[Any], object]] = [bool, int, range, lambda extent: extent < 3]
    for ask in asked:
        with pytest.raises(TypeError):
            ask(n)


@given(n=integers(1, 512), m=integers(0, 10), c=integers(-3, 3))
def test_an_upper_bound_holds_at_all_sizes(n: int, m: int, c: int) -> None:
    """Also of what shrinks as sizes grow."""
    a, b = dim("n", 1, 512), dim("m", 0, 40, step=4)
    sizes = {N: n, M: 4 * m}
    for extent in (
        a * c + b, extreme(SizeOp.MAX, b - a, 0), extreme(SizeOp.MIN, a, b * 3) * 2 - a // 7,
        (a + b - 5) * (b * c + 2), (a - b // 4 * 9) * a, (a * c - b) // 3, a // (b + 1),
    ):  # fmt: skip
        assert fixed(at(extent, sizes)) <= fixed(at_most(extent, {N: 512, M: 40}))
        assert fixed(at(extent, sizes)) <= fixed(at(at_most(extent, {M: 40}), sizes))


def test_an_upper_bound_is_exact_if_the_extent_grows() -> None:
    n, m = dim("n", 1, 512), dim("m", 0, 40, step=4)
    assert at_most(n * 3 + (n + 15) // 16 * m, {N: 100}) == 7 * m + 300


def test_dimensions_are_listed_once_in_order() -> None:
    n, m = dim("n", 1, 512), dim("m", 0, 40, step=4)
    assert dims_of([m + 1, 3, n * m, n // 2]) == (M, N)


@pytest.mark.parametrize(
    "data",
    ["n", True, 1 << 64, ["sum", 3], ["sum", [1, ["dim", "n", 1]]], ["sum", [1, ["//", 3, 0]]],
     ["sum", [1, ["dim", "n", 1, 8, True]]], ["sum", [1, ["sin", 1, 2]]]],
)  # fmt: skip
def test_malformed_data_are_refused(data: object) -> None:
    with pytest.raises(ValueError):
        extent_of(data)
