"""A network run call by call with the interpreter: the oracle of the graph layers' tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import ModelProto

from ansorpy.frontend.onnx import load
from ansorpy.graph import Network, optimize, partition
from ansorpy.ir.dtypes import DType
from ansorpy.ir.interpret import run_dag

__all__ = ["Array", "assert_same_as_onnxruntime", "compiled", "random_feeds", "run_network"]

Array = NDArray[Any]


def run_network(network: Network, feeds: Mapping[str, Array]) -> list[Array]:
    """The network's outputs; each call sees its values under its placeholders' shapes."""
    values = dict(feeds)
    for call in network.calls:
        count = len(call.inputs)
        arguments = {
            p.name: values[name].reshape(p.shape)
            for p, name in zip(call.dag.args[:count], call.inputs, strict=True)
        }
        arguments.update(call.constants)
        assert {p.name for p in call.dag.args[count:]} == set(call.constants)
        results = run_dag(call.dag, arguments)
        values.update(zip(call.outputs, results, strict=True))
    return [values[info.name].reshape(info.shape) for info in network.outputs]


def compiled(model: ModelProto) -> Network:
    return partition(optimize(load(model)))


def random_feeds(network: Network, rng: np.random.Generator) -> dict[str, Array]:
    """Standard normal numbers; integers are -2 to 2, both included, and booleans either."""
    feeds: dict[str, Array] = {}
    for info in network.inputs:
        values: Array = rng.standard_normal(info.shape)
        if info.dtype is DType.BOOL:
            values = values > 0
        elif info.dtype.is_int:
            values = np.clip(np.rint(values), -2, 2)
        feeds[info.name] = np.asarray(values, info.dtype.numpy)
    return feeds


def assert_same_as_onnxruntime(model: ModelProto, rng: np.random.Generator) -> Network:
    """Compare every output within 1e-5 of its largest element; returns the network."""
    network = compiled(model)
    feeds = random_feeds(network, rng)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    expected = session.run([info.name for info in network.outputs], feeds)
    for info, got, want in zip(network.outputs, run_network(network, feeds), expected, strict=True):
        assert got.shape == want.shape, info.name
        scale = max(float(np.abs(want).max()), 1e-6)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * scale, err_msg=info.name)
    return network
