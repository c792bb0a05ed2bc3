"""Networks whose outputs continue inputs, compiled with plain schedules, and their steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import onnx

from ansorpy.frontend.onnx import load
from ansorpy.graph import Network, optimize, partition
from ansorpy.graph.aliases import with_aliases
from ansorpy.runtime.compiled import CompiledModel
from ansorpy.runtime.model import Model
from ansorpy.size_ranges import AnySize
from ansorpy.target import Target
from tests.graph.nets import Net
from tests.peer import peer
from tests.runtime.programs import task_of

Arrays = dict[str, np.ndarray]
Shape = tuple[int, ...]

CAPACITY = 7


@dataclass(frozen=True)
class Growing:
    """A network, and the axis of each cache.

    Args:
        dims: Ranges of its dimensions.
        alias: The input of each output that continues one.
        shapes: Of the caches, with no rows along *axes*.
    """

    network: onnx.ModelProto
    dims: Mapping[str, AnySize]
    alias: Mapping[str, str]
    shapes: Mapping[str, Shape]
    axes: Mapping[str, int]

    def cut(self) -> Network:
        graph = with_aliases(load(self.network, dims=self.dims), self.alias)
        return partition(optimize(graph))

    def compiled(self, target: str = "host", threads: int = 2) -> CompiledModel:
        machine = Target.host() if target == "host" else Target.parse(target)
        network = self.cut()
        tasks = {
            w.key: task_of(w.dag, f"task{n}", target=machine)
            for n, w in enumerate(network.workloads())
        }
        return CompiledModel.of(network, tasks, target=machine, threads=threads)

    def steps(self, rng: np.random.Generator) -> Iterator[tuple[Arrays, Arrays]]:
        """The inputs and the results of onnxruntime, one step after the other."""
        session = peer(self.network)
        names = [output.name for output in session.get_outputs()]
        caches = {name: np.zeros(shape, np.float32) for name, shape in self.shapes.items()}
        while True:
            feeds = dict(caches)
            for given in session.get_inputs():
                if given.name not in caches:
                    shape = [n if isinstance(n, int) else 1 for n in given.shape]
                    feeds[given.name] = rng.standard_normal(shape, dtype=np.float32)
            results = dict(zip(names, session.run(names, feeds), strict=True))
            yield feeds, results
            caches = {given: results[made] for made, given in self.alias.items()}


def memory(case: Growing, capacity: int = CAPACITY) -> Arrays:
    """Memory for each cache of *case*, of a number that no network computes."""
    shapes = {
        name: (*shape[: case.axes[name]], capacity, *shape[case.axes[name] + 1 :])
        for name, shape in case.shapes.items()
    }
    return {name: np.full(shape, 12345.0, np.float32) for name, shape in shapes.items()}


def part(whole: np.ndarray, axis: int, rows: int) -> np.ndarray:
    return whole[(slice(None),) * axis + (slice(rows),)]


def assert_grows(case: Growing, model: Model, rng: np.random.Generator, capacity: int) -> None:
    """Compare steps from no rows until the memory is full; what is behind the rows stays."""
    wholes = memory(case, capacity)
    rows = dict.fromkeys(wholes, 0)
    for feeds, want in case.steps(rng):
        grown = {given: want[made].shape[case.axes[given]] for made, given in case.alias.items()}
        if max(grown.values()) > capacity:
            return
        for name, whole in wholes.items():
            feeds[name] = part(whole, case.axes[name], rows[name])
        got = dict(zip(want, model.run([*want], feeds), strict=True))
        for name, result in want.items():
            np.testing.assert_allclose(got[name], result, rtol=2e-5, atol=2e-5, err_msg=name)
        for made, given in case.alias.items():
            whole, axis = wholes[given], case.axes[given]
            assert np.shares_memory(got[made], whole)
            np.testing.assert_array_equal(part(whole, axis, grown[given]), got[made])
            behind = whole[(slice(None),) * axis + (slice(grown[given], None),)]
            assert (behind == 12345.0).all()
        rows = grown


def decoder(*, heads_first: bool = True, heads: int = 3, each: int = 5) -> Growing:
    """Attention of one token over those before it: the caches of GPT-2, small."""
    width, axis = heads * each, 2 if heads_first else 1
    shape: list[int | str] = [1, heads, "past", each] if heads_first else [1, "past", heads, each]
    net = Net(x=(1, 1, width), past_key=shape, past_value=shape)
    perm = (0, 2, 1, 3)
    parts = [net.reshape(net.op("MatMul", "x", net.normal(width, width)), 1, 1, heads, each)
             for _ in range(3)]  # fmt: skip
    if heads_first:
        parts = [net.op("Transpose", value, perm=perm) for value in parts]
    q, k, v = parts
    keys, values = (
        net.op("Concat", "past_key", k, axis=axis),
        net.op("Concat", "past_value", v, axis=axis),
    )
    read = [q, keys, values]
    if not heads_first:
        read = [net.op("Transpose", value, perm=perm) for value in read]
    scores = net.op("MatMul", read[0], net.op("Transpose", read[1], perm=(0, 1, 3, 2)))
    mixed = net.op("MatMul", net.op("Softmax", scores, axis=-1), read[2])
    y = net.reshape(net.op("Transpose", mixed, perm=perm), 1, 1, width)
    empty = tuple(0 if n == "past" else int(n) for n in shape)
    return Growing(
        net.model(y, keys, values), {"past": (0, CAPACITY - 1)},
        {keys: "past_key", values: "past_value"},
        {"past_key": empty, "past_value": empty}, {"past_key": axis, "past_value": axis},
    )  # fmt: skip


def random_case(rng: np.random.Generator) -> Growing:
    """One or two caches that grow along a random axis by one to three rows of random origin."""
    rank = int(rng.integers(1, 5))
    axis = int(rng.integers(rank))
    extents = [int(n) for n in rng.choice([1, 2, 3, 5], rank)]
    grow = int(rng.integers(1, 4))
    row = tuple(grow if d == axis else n for d, n in enumerate(extents))
    names = [f"past{n}" for n in range(int(rng.integers(1, 3)))]
    dims = names if rng.integers(2) else ["past"] * len(names)
    shapes = {
        name: [dim if d == axis else n for d, n in enumerate(extents)]
        for name, dim in zip(names, dims, strict=True)
    }
    net = Net(int(rng.integers(1 << 30)), 17, x=row, **shapes)
    parts = int(rng.choice([1, 1, 2]))
    outputs: list[str] = []
    alias: dict[str, str] = {}
    for name in names:
        new = [_ROWS[int(rng.integers(len(_ROWS)))](net, row) for _ in range(parts)]
        made = net.op("Concat", name, *new, axis=axis)
        alias[made] = name
        outputs += [made, *_readers(net, rng, made, name, rank)]
    order = [outputs[int(n)] for n in rng.permutation(len(outputs))]
    empty = tuple(0 if d == axis else n for d, n in enumerate(extents))
    return Growing(
        net.model(*order), dict.fromkeys(dims, (0, 4 * CAPACITY)), alias,
        dict.fromkeys(names, empty), dict.fromkeys(names, axis),
    )  # fmt: skip


def _flat_product(net: Net, row: Shape) -> str:
    size = int(np.prod(row))
    flat = net.op("MatMul", net.reshape("x", 1, size), net.normal(size, size))
    return net.reshape(flat, *row)


def _turned(net: Net, row: Shape) -> str:
    whole = net.op("Transpose", net.op("Tanh", "x"), perm=range(len(row))[::-1])
    return net.op("Transpose", net.op("Neg", whole), perm=range(len(row))[::-1])


_ROWS: tuple[Callable[[Net, Shape], str], ...] = (
    lambda net, row: "x",
    lambda net, row: net.op("Tanh", "x"),
    lambda net, row: net.normal(*row),
    _flat_product,
    _turned,
)
"""Where new rows come from."""


def _readers(net: Net, rng: np.random.Generator, made: str, given: str, rank: int) -> list[str]:
    """Outputs that read the cache, its rows of before, or both."""
    turned = net.op("Transpose", made, perm=rng.permutation(rank).tolist())
    kinds = [
        lambda: net.op("ReduceSum", net.op("Exp", turned), keepdims=0),
        lambda: net.op("ReduceSum", net.op("Mul", given, net.constant(0.5)), keepdims=0),
        lambda: net.op("Neg", turned),
    ]
    return [kinds[int(n)]() for n in rng.permutation(3)[: int(rng.integers(3))]]
