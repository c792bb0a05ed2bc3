"""ansorpy compiles tensor programs by searching for fast ones.

:func:`compile` takes a network, and :func:`tune` an operator that is defined as here; what they
return can be called, and exported as a library, which :func:`load` opens.

>>> import ansorpy as ap
>>> A = ap.placeholder((4, 8), name="A")
>>> k = ap.reduce_axis(8, name="k")
>>> B = ap.compute((4,), lambda i: ap.sum(A[i, k], axis=k), name="B")
>>> B.shape
(4,)

Every public name is loaded when it is first used, so importing the package is cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ansorpy.version import __version__ as __version__

if TYPE_CHECKING:
    from ansorpy.api.evaluate.bench import bench
    from ansorpy.api.evaluate.report import report
    from ansorpy.api.evaluate.verify import verify
    from ansorpy.api.networks import NetworkSpec, compile, compile_many
    from ansorpy.api.operators import build, tune
    from ansorpy.api.parts import PARTS
    from ansorpy.api.replay import replay
    from ansorpy.errors import AnsorpyError
    from ansorpy.frontend.onnx.registry import register_op, unregister_op
    from ansorpy.ir.attrs import Attrs
    from ansorpy.ir.builders import (
        abs,
        all_of,
        argmax,
        argmin,
        ceil,
        cos,
        erf,
        exp,
        floor,
        log,
        max,
        maximum,
        min,
        minimum,
        prod,
        round,
        rsqrt,
        select,
        sigmoid,
        sin,
        sqrt,
        sum,
        tanh,
    )
    from ansorpy.ir.dag import ComputeDAG
    from ansorpy.ir.dtypes import DType
    from ansorpy.ir.expr import Expr
    from ansorpy.ir.extents import dim
    from ansorpy.ir.task import Task
    from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
    from ansorpy.runtime.compiled import CompiledModel
    from ansorpy.runtime.kernel import Kernel
    from ansorpy.runtime.model import Model, load
    from ansorpy.schedule.decisions import OneOf
    from ansorpy.schedule.state import State
    from ansorpy.target import Target

__all__ = [
    "PARTS",
    "AnsorpyError",
    "Attrs",
    "CompiledModel",
    "ComputeDAG",
    "DType",
    "Expr",
    "Kernel",
    "Model",
    "NetworkSpec",
    "OneOf",
    "State",
    "Target",
    "Task",
    "Tensor",
    "abs",
    "all_of",
    "argmax",
    "argmin",
    "bench",
    "build",
    "ceil",
    "compile",
    "compile_many",
    "compute",
    "cos",
    "dim",
    "erf",
    "exp",
    "floor",
    "load",
    "log",
    "max",
    "maximum",
    "min",
    "minimum",
    "placeholder",
    "prod",
    "reduce_axis",
    "register_op",
    "replay",
    "report",
    "round",
    "rsqrt",
    "select",
    "sigmoid",
    "sin",
    "sqrt",
    "sum",
    "tanh",
    "tune",
    "unregister_op",
    "verify",
]  # fmt: skip

_HOME = {
    "AnsorpyError": "ansorpy.errors",
    "Attrs": "ansorpy.ir.attrs",
    "CompiledModel": "ansorpy.runtime.compiled",
    "ComputeDAG": "ansorpy.ir.dag",
    "DType": "ansorpy.ir.dtypes",
    "Expr": "ansorpy.ir.expr",
    "Kernel": "ansorpy.runtime.kernel",
    "Model": "ansorpy.runtime.model",
    "PARTS": "ansorpy.api.parts",
    "OneOf": "ansorpy.schedule.decisions",
    "State": "ansorpy.schedule.state",
    "Target": "ansorpy.target",
    "Task": "ansorpy.ir.task",
    "Tensor": "ansorpy.ir.tensor",
    "NetworkSpec": "ansorpy.api.networks",
    "bench": "ansorpy.api.evaluate.bench",
    "build": "ansorpy.api.operators",
    "compile_many": "ansorpy.api.networks",
    "compile": "ansorpy.api.networks",
    "compute": "ansorpy.ir.tensor",
    "dim": "ansorpy.ir.extents",
    "load": "ansorpy.runtime.model",
    "placeholder": "ansorpy.ir.tensor",
    "reduce_axis": "ansorpy.ir.tensor",
    "register_op": "ansorpy.frontend.onnx.registry",
    "replay": "ansorpy.api.replay",
    "tune": "ansorpy.api.operators",
    "unregister_op": "ansorpy.frontend.onnx.registry",
    "report": "ansorpy.api.evaluate.report",
    "verify": "ansorpy.api.evaluate.verify",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'ansorpy' has no attribute {name!r}")
    value = getattr(import_module(_HOME.get(name, "ansorpy.ir.builders")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
