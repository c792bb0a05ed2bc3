"""Strides against numpy's own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansorpy.ir.analysis.similarity import class_hash
from ansorpy.ir.dag import ComputeDAG, in_row_major_order
from ansorpy.ir.strides import dense_strides, normalised, reshaped, span
from ansorpy.ir.tensor import compute, placeholder
from ansorpy.ir.text.serialize import dag_from_dict, dag_to_dict, structural_hash

EXTENTS = st.integers(1, 4)


@st.composite
def parts(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides of a part of a larger tensor."""
    shape = tuple(draw(st.lists(EXTENTS, min_size=0, max_size=4)))
    wider = [extent + draw(st.integers(0, 2)) for extent in shape]
    return shape, dense_strides(wider)


def places(shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    """The place of each element, in index order."""
    at = np.zeros(1, np.int64)
    for extent, stride in zip(shape, strides, strict=True):
        at = (at[:, None] + stride * np.arange(extent)).reshape(-1)
    return at


def factored(data: st.DataObject, size: int) -> tuple[int, ...]:
    shape: list[int] = []
    while size > 1:
        factor = data.draw(st.sampled_from([f for f in range(2, size + 1) if size % f == 0]))
        shape.append(factor)
        size //= factor
        if data.draw(st.booleans()):
            shape.append(1)
    return tuple(shape)


@given(parts(), st.data())
def test_a_reshape_keeps_every_element_in_its_place(
    part: tuple[tuple[int, ...], tuple[int, ...]], data: st.DataObject
) -> None:
    shape, strides = part
    to = factored(data, int(np.prod(shape)))
    found = reshaped(shape, strides, to)
    memory = np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), shape, strides)
    view = memory.view()
    try:
        view.shape = to
    except AttributeError:
        assert found is None
        return
    assert found is not None and in_row_major_order(to, found)
    np.testing.assert_array_equal(places(to, found), places(shape, strides))


@given(parts())
def test_parts_are_in_order_and_end_at_their_span(
    part: tuple[tuple[int, ...], tuple[int, ...]],
) -> None:
    shape, strides = part
    at = places(shape, strides)
    assert (np.diff(at) > 0).all() and at[-1] + 1 == span(shape, strides)
    assert in_row_major_order(shape, strides)
    np.testing.assert_array_equal(at, places(shape, normalised(shape, strides)))


def test_overlapping_and_turned_strides_are_out_of_order() -> None:
    assert not in_row_major_order((2, 3), (2, 1))
    assert not in_row_major_order((2, 3), (1, 2))


def doubled(**strides: tuple[int, ...]) -> ComputeDAG:
    a = placeholder((3, 4), name="A")
    return ComputeDAG([compute((3, 4), lambda i, j: a[i, j] * 2.0, name="B")], [a], strides)


def test_strides_are_part_of_a_definition_but_not_of_its_class() -> None:
    apart = doubled(A=(8, 1), B=(16, 1))
    assert structural_hash(apart) != structural_hash(doubled())
    assert class_hash(apart) == class_hash(doubled())
    again = dag_from_dict(dag_to_dict(apart))
    assert again.strides == {"A": (8, 1), "B": (16, 1)}
    assert structural_hash(again) == structural_hash(apart)


def test_dense_strides_are_none() -> None:
    assert doubled(A=(4, 1)).strides == {}
    assert structural_hash(doubled(A=(4, 1))) == structural_hash(doubled())


@pytest.mark.parametrize(
    ("name", "strides", "message"),
    [
        ("C", (4, 1), "C is neither an input nor an output"),
        ("A", (3, 1), "cannot have the strides"),
        ("A", (4,), "cannot have the strides"),
    ],
)
def test_strides_that_do_not_fit_are_refused(
    name: str, strides: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        doubled(**{name: strides})
