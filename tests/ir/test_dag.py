"""ComputeDAG: what it refuses, and what counts as known when constants are bound."""

from __future__ import annotations

import pytest

from ansorpy.errors import UsageError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.extents import dim
from ansorpy.ir.tensor import compute, placeholder


def test_an_output_is_given_once() -> None:
    x = placeholder((5,), name="x")
    y = compute((5,), lambda i: x[i] * 2.0, name="y")
    with pytest.raises(ValueError, match="given twice: y"):
        ComputeDAG([y, y])


def test_what_depends_on_constants_alone_is_constant() -> None:
    x, w = placeholder((5,), name="x"), placeholder((5,), name="w", constant=True)
    scaled = compute((5,), lambda i: w[i] * 2.0, name="scaled")
    mixed = compute((5,), lambda i: scaled[i] + x[i], name="mixed")
    assert ComputeDAG([mixed]).constant_ops == {w, scaled}


def test_an_output_is_not_constant_nor_what_reads_it() -> None:
    w = placeholder((5,), name="w", constant=True)
    scaled = compute((5,), lambda i: w[i] * 2.0, name="scaled")
    shifted = compute((5,), lambda i: scaled[i] + 1.0, name="shifted")
    last = compute((5,), lambda i: shifted[i] * 3.0, name="last")
    assert ComputeDAG([scaled, last]).constant_ops == {w}


def test_arguments_are_given_once_and_read() -> None:
    x, z = placeholder((5,), name="x"), placeholder((5,), name="z")
    y = compute((5,), lambda i: x[i] * 2.0, name="y")
    with pytest.raises(ValueError, match="given twice: x"):
        ComputeDAG([y], [x, x])
    with pytest.raises(ValueError, match="no output depends on the arguments z"):
        ComputeDAG([y], [x, z])
    with pytest.raises(ValueError, match="the arguments lack the placeholders x"):
        ComputeDAG([y], [z])


def test_dimensions_have_different_names() -> None:
    n, other = dim("n", 1, 8), dim("n", 1, 16)
    x, y = placeholder((n,), name="x"), placeholder((other,), name="y")
    z = compute((n, other), lambda i, j: x[i] + y[j], name="z")
    with pytest.raises(UsageError, match=r"one name: n=1\.\.8 and n=1\.\.16"):
        ComputeDAG.of([x, y, z])
