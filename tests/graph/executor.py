"""A network run call by call with the interpreter: the oracle of the graph layers' tests."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator

from ansorpy.codegen.llvm.objects.memory import arranged
from ansorpy.frontend.onnx import load
from ansorpy.graph import Network, optimize, partition
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import prod_of
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.rewrite.sizes import dag_at
from ansorpy.ir.sizes import at, fixed, fixed_all
from ansorpy.ir.strides import Strides, dense_strides, span
from ansorpy.ir.symbols import Dim

__all__ = [
    "Array", "assert_same_as_onnxruntime", "compiled", "random_feeds", "run_network",
    "run_reference",
]  # fmt: skip

Array = NDArray[Any]


def run_network(
    network: Network, feeds: Mapping[str, Array], offsets: Mapping[str, int] | None = None
) -> list[Array]:
    """The network's outputs, each call run on the memory that the plan gives its values.

    Args:
        offsets: Bytes into the arena at which values begin, in place of the plan's.
    """
    offsets = network.arena.offsets if offsets is None else offsets
    sizes: dict[Dim, int] = {}
    """Of the dimensions that calls count."""
    room = {n: fixed(at(info.bytes, network.capacities)) for n, info in network.values.items()}
    arena = np.full(max((at_ + room[n] for n, at_ in offsets.items()), default=0), 0xFF, np.uint8)
    outputs = {
        o.name: np.full(
            fixed(at(prod_of(o.shape), network.capacities)),
            99 if o.dtype.is_int else np.nan, o.dtype.numpy,
        )
        for o in network.outputs
    }  # fmt: skip

    def memory(name: str, shape: Sequence[int], apart: Strides | None) -> Array:
        info, offset = network.values[name], 0
        if name in network.subviews:
            view = network.subviews[name]
            name, offset = view.of, fixed(at(view.offset_bytes, sizes))
        if name in feeds or name in outputs:
            whole = (feeds if name in feeds else outputs)[name].reshape(-1)
        else:
            first = offsets[name]
            whole = arena[first : first + room[name]].view(info.dtype.numpy)
        return arranged(whole[offset // whole.itemsize :][: _span(shape, apart)], shape, apart)

    for call in network.calls:
        count, dag = len(call.inputs), dag_at(call.dag, sizes)
        arguments = {
            p.name: memory(name, p.shape, dag.strides.get(p.name)).copy()
            for p, name in zip(dag.args[:count], call.inputs, strict=True)
        }
        arguments.update(call.constants)
        assert {p.name for p in dag.args[count:]} == set(call.constants)
        for op, name, result in zip(
            dag.outputs, call.outputs, run_dag(dag, arguments), strict=True
        ):
            memory(name, op.shape, dag.strides.get(op.name))[...] = result
        for counted in network.counts:
            if network.root(counted.name) in map(network.root, call.outputs):
                sizes[counted.dim] = int(memory(counted.name, (), None))
    shapes = (fixed_all(at(n, sizes) for n in info.shape) for info in network.outputs)
    return [
        outputs[info.name][: math.prod(shape)].reshape(shape)
        for info, shape in zip(network.outputs, shapes, strict=True)
    ]


def _span(shape: Sequence[int], apart: Strides | None) -> int:
    return span(shape, dense_strides(shape) if apart is None else apart)


def compiled(model: ModelProto) -> Network:
    return partition(optimize(load(model)))


def run_reference(model: ModelProto, feeds: Mapping[str, Array]) -> list[Array]:
    """The outputs of *model* by onnx's reference implementation."""
    return [np.asarray(found) for found in ReferenceEvaluator(model).run(None, dict(feeds))]


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


def assert_same_as_onnxruntime(
    model: ModelProto, rng: np.random.Generator, network: Network | None = None
) -> Network:
    """Compare every output within 1e-5 of its largest element; returns the network.

    Args:
        network: What *model* was compiled to; default: as it is cut when nothing is known.
    """
    network = network or compiled(model)
    feeds = random_feeds(network, rng)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    expected = session.run([info.name for info in network.results], feeds)
    for info, got, want in zip(network.outputs, run_network(network, feeds), expected, strict=True):
        assert got.shape == want.shape, info.name
        scale = max(float(np.abs(want).max(initial=0)), 1e-6)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * scale, err_msg=info.name)
    return network
