"""One operator of com.microsoft, computed by us and by onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper

from ansorpy.frontend.onnx import load
from ansorpy.graph import optimize, partition
from tests.graph.executor import run_network
from tests.peer import peer

__all__ = ["Array", "assert_as_onnxruntime", "both", "model_of", "normal"]

Array = NDArray[Any]


def normal(seed: int, *shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def model_of(
    operator: str,
    operands: Mapping[str, Any],
    outputs: Mapping[str, int],
    constants: Sequence[str] = (),
    domain: str = "com.microsoft",
    **attributes: Any,
) -> ModelProto:
    """A model of one node; those of *operands* that are named in *constants* are constants."""
    names = ["" if array is None else name for name, array in operands.items()]
    given = {name: array for name, array in operands.items() if array is not None}
    node = helper.make_node(operator, names, list(outputs), domain=domain, **attributes)
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in given.items() if n not in constants
    ]  # fmt: skip
    results = [helper.make_tensor_value_info(n, kind, None) for n, kind in outputs.items() if n]
    held = [numpy_helper.from_array(given[name], name) for name in constants]
    graph = helper.make_graph([node], "g", inputs, results, held)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def both(
    operator: str,
    operands: Mapping[str, Any],
    outputs: Mapping[str, int],
    constants: Sequence[str] = (),
    domain: str = "com.microsoft",
    **attributes: Any,
) -> tuple[list[Array], list[Array]]:
    """Our results and those of onnxruntime."""
    model = model_of(operator, operands, outputs, constants, domain, **attributes)
    feeds = {n: a for n, a in operands.items() if a is not None and n not in constants}
    session = peer(model)
    return run_network(partition(optimize(load(model))), feeds), session.run(None, feeds)


def assert_as_onnxruntime(
    operator: str,
    operands: Mapping[str, Any],
    outputs: Mapping[str, int] | None = None,
    constants: Sequence[str] = (),
    tolerance: float = 2e-5,
    domain: str = "com.microsoft",
    **attributes: Any,
) -> None:
    """Require results of the same types, and of the same values within *tolerance*."""
    outputs = {"y": TensorProto.FLOAT} if outputs is None else outputs
    found = both(operator, operands, outputs, constants, domain, **attributes)
    for got, want in zip(*found, strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(
            got.astype(np.float64), want.astype(np.float64), rtol=tolerance, atol=tolerance
        )
