"""The C text of products in tensor cores, run on the host beside the interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ansorpy.codegen.cuda.emit.program import CudaSource
from ansorpy.ir.interpret import run_program
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
) -> None:
    """Assert that the text of each program uses *instruction* and equals the interpreter.

    Args:
        drawn: Programs and their texts by ``case_number``, where *workloads* has the case.
        instruction: What the name of one of the text's helpers begins with.
    """
    sources = [(symbol, program, source) for symbol, (program, source) in drawn.items()]
    run = Emulated(sources, folder)
    for symbol, program, source in sources:
        assert any(helper.startswith(instruction) for helper in source.helpers)
        tensors = workloads[symbol.rsplit("_", 1)[0]]
        data = values(tensors, rng)
        got, want = arguments(program, data), arguments(program, data)
        run(symbol, got)
        run_program(program, want)
        atol = tolerance(tensors, want[-1])
        np.testing.assert_allclose(
            got[-1].astype(np.float64), want[-1].astype(np.float64), rtol=0, atol=atol,
            err_msg=symbol,
        )  # fmt: skip
