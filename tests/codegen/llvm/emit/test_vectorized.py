"""Nests of vector loops: whatever their extents, long ones become loops over whole vectors."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.codegen.llvm.emit.program import emit_llvm
from ansorpy.ir.expr import Expr
from ansorpy.ir.loops import Program, Store
from ansorpy.target import Target
from tests.codegen.programs import Compiled, at, buffer, empty, nest, program, put, random

EXTENTS = [(111, 61, 3), (40, 3), (37, 3), (33, 21), (300, 5), (50, 16), (7, 3, 2), (1000,)]


def copy_transposed(shape: tuple[int, ...]) -> Program:
    """``out[i, j, ...] = x[..., j, i]``, all loops vectors."""
    x, out = buffer("x", *shape[::-1]), buffer("out", *shape)

    def body(*at_: Expr) -> Store:
        return put(out, at_, at(x, *at_[::-1]))

    return program(nest(" ".join(f"v{n}" for n in shape), body), [x], [out])


@pytest.mark.parametrize("shape", EXTENTS, ids=str)
def test_every_element_is_written_once(shape: tuple[int, ...]) -> None:
    kernel, x, out = Compiled(copy_transposed(shape)), random(shape[::-1]), empty(shape)
    kernel(x, out)
    np.testing.assert_array_equal(out, x.T)


@pytest.mark.parametrize("shape", EXTENTS, ids=str)
def test_the_code_does_not_grow_with_the_extents(shape: tuple[int, ...]) -> None:
    longer = (shape[0] * 10, *shape[1:])
    lines = [emit_llvm(copy_transposed(s), Target.host(), "k").count("\n") for s in (shape, longer)]
    assert max(lines) < 1000
