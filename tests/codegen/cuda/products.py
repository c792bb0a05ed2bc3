"""The C text of products in tensor cores, run on the host beside what they are defined as."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ansorpy.codegen.cuda.emit.program import CudaSource
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.loops import Program
from ansorpy.ir.tensor import Tensor
from tests.codegen.cuda.emulator import Emulated
from tests.tensor_cores import arguments, tolerance, values

__all__ = ["assert_text_computes"]


def assert_text_computes(
    drawn: Mapping[str, tuple[Program, CudaSource]],
    workloads: Mapping[str, Sequence[Tensor]],
    instruction: str,
    folder: Path,
    rng: np.random.Generator,
    error: float | None = None,
) -> None:
    """Assert that the text of each program uses *instruction* and computes its definition.

    Args:
        drawn: Programs and their texts by ``case_number``, where *workloads* has the case.
        instruction: What the name of one of the text's helpers begins with.
        error: What may be missed, relative to the largest number; default: a product's roundings.
    """
    sources = [(symbol, program, source) for symbol, (program, source) in drawn.items()]
    run = Emulated(sources, folder)
    for symbol, program, source in sources:
        assert any(helper.startswith(instruction) for helper in source.helpers)
        tensors = workloads[symbol.rsplit("_", 1)[0]]
        data = values(tensors, rng)
        (want,) = run_dag(ComputeDAG.of(tensors), data, dtype=DType.FLOAT64)
        got = arguments(program, data)
        run(symbol, got)
        largest = float(np.abs(want).max())
        atol = tolerance(tensors, want) if error is None else error * max(1.0, largest)
        np.testing.assert_allclose(
            got[-1].astype(np.float64), want.astype(np.float64), rtol=0, atol=atol,
            err_msg=symbol,
        )  # fmt: skip
