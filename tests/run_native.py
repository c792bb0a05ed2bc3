"""Running lowered programs as machine code, for tests."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping

import numpy as np

from ansorpy.codegen.llvm.objects.build import build
from ansorpy.codegen.llvm.objects.jit import load
from ansorpy.codegen.llvm.objects.memory import aligned_empty
from ansorpy.ir.loops import Program, Role
from ansorpy.ir.sizes import Sizes, at, fixed
from ansorpy.measure.check.guard import GuardedArray
from ansorpy.schedule.lowering.program import Lowered
from ansorpy.target import Target

__all__ = ["run_lowered", "run_native"]

Arrays = dict[str, np.ndarray]
Call = Callable[[Program, list[np.ndarray]], None]
"""Runs a program on arrays, one a parameter, in place."""
_KERNEL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32)


def run_native(
    lowered: Lowered,
    data: Arrays,
    threads: int = 2,
    *,
    over: Mapping[str, str] | None = None,
    sizes: Sizes | None = None,
) -> list[np.ndarray]:
    """The outputs of *lowered* for *data* (arrays by placeholder name), computed by LLVM's code.

    *over* names outputs that are written where an input lies; *sizes* has those of dimensions.
    """

    def call(program: Program, arrays: list[np.ndarray]) -> None:
        code = build(program, Target.host(), symbol="kernel")
        size = fixed(at(code.workspace_bytes(threads), sizes or {}))
        workspace = aligned_empty((max(size, 64),), np.uint8)
        stated = np.array([(sizes or {})[dim] for dim in program.dims], np.int64)
        places = [array.ctypes.data for array in (*arrays, stated)]
        table = (ctypes.c_void_p * len(places))(*places)
        with load([code]) as library:
            run = _KERNEL(library.address(code.symbol))
            assert run(table, workspace.ctypes.data, threads) == 0

    return run_lowered(lowered, data, call, over=over, sizes=sizes)


def run_lowered(
    lowered: Lowered,
    data: Arrays,
    call: Call,
    *,
    over: Mapping[str, str] | None = None,
    sizes: Sizes | None = None,
) -> list[np.ndarray]:
    """The outputs of *lowered* for *data*, where *call* runs a program."""
    bound = _outputs(lowered.bind, data, call, {}, {}) if lowered.bind is not None else {}
    return list(_outputs(lowered.run, data | bound, call, over or {}, sizes or {}).values())


def _outputs(
    program: Program, data: Arrays, call: Call, over: Mapping[str, str], sizes: Sizes
) -> Arrays:
    arrays: list[np.ndarray] = []
    apart: list[GuardedArray] = []
    places = {param.buffer.name: place for place, param in enumerate(program.params)}
    for param in program.params:
        buffer = param.buffer
        if buffer.name in over:
            arrays.append(arrays[places[over[buffer.name]]])
            continue
        shape = tuple(fixed(at(extent, sizes)) for extent in buffer.shape)
        array = aligned_empty(shape, buffer.dtype.numpy)
        if buffer.strides is not None:
            strides = tuple(fixed(at(step, sizes)) for step in buffer.strides)
            apart.append(GuardedArray(shape, buffer.dtype.numpy, strides=strides))
            array = apart[-1].array
        poison = np.nan if buffer.dtype.is_float else 99
        array[...] = poison if param.role is Role.OUTPUT else data[buffer.name]
        arrays.append(array)
    call(program, arrays)
    assert all(guarded.is_intact() for guarded in apart), "wrote between the elements"
    named = zip(program.params, arrays, strict=True)
    return {p.buffer.name: array for p, array in named if p.role is Role.OUTPUT}
