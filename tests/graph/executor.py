"""A network run call by call with the interpreter: the oracle of the graph layers' tests."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator

from ansorpy.codegen.llvm.objects.memory import arranged
from ansorpy.frontend.onnx import load
from ansorpy.graph import Network, optimize, partition
from ansorpy.graph.control import Control, Inside, Loop, nested
from ansorpy.graph.network import Call, TensorInfo
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import prod_of
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.narrow import Narrow, packed, unpacked
from ansorpy.ir.rewrite.sizes import dag_at
from ansorpy.ir.sizes import Sizes, at, at_most, fixed, fixed_all
from ansorpy.ir.strides import Strides, dense_strides, span
from ansorpy.ir.symbols import Dim
from tests.peer import peer

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
    run = _Run(network, feeds, offsets)
    run.parts(nested(len(network.calls), network.controls))
    return [run.result(info) for info in network.outputs]


class _Run:
    """One run: its memory, the sizes it has counted, and where loops are."""

    def __init__(
        self, network: Network, feeds: Mapping[str, Array], offsets: Mapping[str, int] | None
    ):
        self.network = network
        self.feeds = {
            i.name: packed(feeds[i.name], i.dtype) if isinstance(i.dtype, Narrow) else feeds[i.name]
            for i in network.inputs if i.name in feeds
        }  # fmt: skip
        self.offsets = network.arena.offsets if offsets is None else offsets
        self.sizes: dict[Dim, int] = {}
        """Of the dimensions that calls and loops count."""
        capacities = network.capacities
        self.room = {
            n: fixed(at_most(info.bytes, capacities)) for n, info in network.values.items()
        }
        ends = (offset + self.room[name] for name, offset in self.offsets.items())
        self.arena = np.full(max(ends, default=0), 0xFF, np.uint8)
        self.outputs = {o.name: _unwritten(o, capacities) for o in network.outputs}
        self.moving: dict[str, Array] = {}
        """The memory of values that loops move, as it is now."""

    def result(self, info: TensorInfo) -> Array:
        """An output, without the room that it did not need."""
        shape = fixed_all(at(extent, self.sizes) for extent in info.shape)
        if isinstance(info.dtype, Narrow):
            return unpacked(self.outputs[info.name], info.dtype, math.prod(shape)).reshape(shape)
        return self.outputs[info.name][: math.prod(shape)].reshape(shape)

    def memory(self, name: str, shape: Sequence[int], apart: Strides | None) -> Array:
        info, offset = self.network.values[name], 0
        if name in self.network.subviews:
            view = self.network.subviews[name]
            name, offset = view.of, fixed(at(view.offset_bytes, self.sizes))
        whole = self._whole(name, info.dtype)
        return arranged(whole[offset // whole.itemsize :][: _span(shape, apart)], shape, apart)

    def _whole(self, name: str, dtype: DType | Narrow) -> Array:
        for held in (self.moving, self.feeds, self.outputs):
            if name in held:
                return held[name].reshape(-1)
        first = self.offsets[name]
        return self.arena[first : first + self.room[name]].view(dtype.numpy)

    def value(self, name: str) -> Array:
        return self.memory(name, self.shape(name), None)

    def shape(self, name: str) -> tuple[int, ...]:
        sizes = {**self.network.capacities, **self.sizes}
        return fixed_all(at(extent, sizes) for extent in self.network.values[name].shape)

    def size(self, name: str) -> int:
        """The number of elements of the value *name*, at least one."""
        return max(1, math.prod(self.shape(name)))

    def parts(self, parts: Sequence[int | Inside[Control]]) -> None:
        for part in parts:
            if isinstance(part, int):
                self.call(self.network.calls[part])
            elif isinstance(part.control, Loop):
                self.loop(part.control, part.parts)
            else:
                branch = part.control
                then, other = part.split(branch.middle)
                self.parts(then if self.value(branch.condition) else other)

    def loop(self, loop: Loop, parts: Sequence[int | Inside[Control]]) -> None:
        bound = np.inf if loop.trips is None else fixed(at(loop.trips, self.sizes))
        if loop.limit is not None:
            bound = min(bound, self.value(loop.limit).item())
        goes_on = loop.begins is None or bool(self.value(loop.begins))
        homes = [(self.value(c.result), self.value(c.spare)) for c in loop.carried]
        for carried, (result, _) in zip(loop.carried, homes, strict=True):
            self.moving |= {carried.current: self.value(carried.before), carried.next: result}
        i = 0
        while goes_on and i < bound:
            self.value(loop.counter)[...] = i
            for row in loop.rows:
                whole = self.value(row.whole).reshape(-1)
                size = self.size(row.name)
                place = whole.size // size - 1 - i if row.is_last else i
                self.moving[row.name] = whole[place * size :][:size]
            self.parts(parts)
            for carried, (result, spare) in zip(loop.carried, homes, strict=True):
                written = self.moving[carried.current] = self.moving[carried.next]
                self.moving[carried.next] = spare if written is result else result
            goes_on, i = loop.goes_on is None or bool(self.value(loop.goes_on)), i + 1
        for carried, (result, _) in zip(loop.carried, homes, strict=True):
            result[...] = self.moving[carried.current].reshape(result.shape).copy()
        if loop.count is not None:
            self.value(loop.count)[...] = i
            self.tell([loop.count])

    def tell(self, written: Sequence[str]) -> None:
        """Note the sizes that the values *written* tell."""
        root = self.network.root
        for counted in self.network.counts:
            if root(counted.name) in map(root, written):
                self.sizes[counted.dim] = int(self.memory(counted.name, (), None))

    def call(self, call: Call) -> None:
        count, dag = len(call.inputs), dag_at(call.dag, self.sizes)
        arguments = {
            p.name: self.memory(name, p.shape, dag.strides.get(p.name)).copy()
            for p, name in zip(dag.args[:count], call.inputs, strict=True)
        }
        arguments.update(call.constants)
        assert {p.name for p in dag.args[count:]} == set(call.constants)
        for op, name, result in zip(
            dag.outputs, call.outputs, run_dag(dag, arguments), strict=True
        ):
            self.memory(name, op.shape, dag.strides.get(op.name))[...] = result
        self.tell(call.outputs)


def _unwritten(info: TensorInfo, capacities: Sizes) -> Array:
    """The memory of an output."""
    if isinstance(info.dtype, Narrow):
        return np.full(info.bytes, 99, np.uint8)
    size = fixed(at_most(prod_of(info.shape), capacities))
    return np.full(size, 99 if info.dtype.is_int else np.nan, info.dtype.numpy)


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
        elif not info.dtype.is_float:
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
    session = peer(model)
    expected = session.run([info.name for info in network.results], feeds)
    for info, got, want in zip(network.outputs, run_network(network, feeds), expected, strict=True):
        assert got.shape == want.shape, info.name
        scale = max(float(np.abs(want).max(initial=0)), 1e-6)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * scale, err_msg=info.name)
    return network
