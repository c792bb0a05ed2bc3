"""Networks with dimensions whose values have random shapes and lifetimes, and their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ansorpy.graph.network import Call, Network, Subview, TensorInfo
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr
from ansorpy.ir.extents import Extent, dim, dims_of
from ansorpy.ir.sizes import at, fixed_all
from ansorpy.ir.tensor import ComputeOp, compute, placeholder, reduce_axis
from ansorpy.runtime.compiled import CompiledModel
from ansorpy.runtime.compiled_task import CompiledTask
from ansorpy.schedule.state import State
from ansorpy.target import Target
from tests.runtime.programs import task_of

Arrays = dict[str, np.ndarray]
Shape = tuple[Extent, ...]
Reference = Callable[[Arrays], np.ndarray]

N, M = dim("n", 0, 37), dim("m", 1, 23)
SHAPES: tuple[Shape, ...] = (
    (N, 8), (M, 8), (N + M, 8), (N * 2 + 1,), ((M + 4) // 3, 5), (N, M), (3, 4),
)  # fmt: skip
"""Shapes of values; rows of 8 elements begin at a cache line each."""


@dataclass
class Sized:
    """A network while it is being made, of int64: results are exact.

    ``references`` computes each value from all that were computed before it, at any sizes.
    """

    values: dict[str, TensorInfo] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    subviews: dict[str, Subview] = field(default_factory=dict)
    references: dict[str, Reference] = field(default_factory=dict)

    def value(self, name: str, shape: Shape) -> str:
        self.values[name] = TensorInfo(name, shape, DType.INT64)
        return name

    def call(self, name: str, out: ComputeOp, inputs: Sequence[str], reference: Reference) -> str:
        """Add the call that computes *out*, whose arguments are ``a``, ``b`` and so on."""
        args = {op.name: op for op in ComputeDAG([out]).args}
        dag = ComputeDAG([out], [args[letter] for letter in "ab"[: len(inputs)]])
        if name not in self.values:
            self.value(name, out.shape)
        self.calls.append(Call(f"call_{name}", dag, tuple(inputs), {}, (name,)))
        self.references[name] = reference
        return name

    def combined(self, name: str, a: str, b: str, factor: int) -> str:
        """``a * factor - b``, of one shape."""
        shape = self.values[a].shape
        x, y = placeholder(shape, DType.INT64, name="a"), placeholder(shape, DType.INT64, name="b")
        out = compute(shape, lambda *i: x[i] * factor - y[i], name="y")
        return self.call(name, out, [a, b], lambda known: known[a] * factor - known[b])

    def total(self, name: str, a: str, b: str, shape: Shape) -> str:
        """A value of *shape* whose elements are all the sum of *a*, which may be empty, and *b*.

        The model's inputs may tell a dimension of *shape* that neither of them has.
        """
        parts: list[ComputeOp] = []
        for given in (a, b):
            x = placeholder(self.values[given].shape, DType.INT64, name="ab"[len(parts)])
            axes = [reduce_axis(n, name=f"k{k}") for k, n in enumerate(x.shape)]
            parts.append(_alone(sum_over(x[tuple(axes)], axis=axes), f"s{x.name}"))

        def reference(known: Arrays) -> np.ndarray:
            sizes = {"n": len(known["x"]), "m": len(known["w"])}
            return np.full(shape_at(shape, sizes), known[a].sum() + known[b].sum())

        out = compute(shape, lambda *_: parts[0][0] + parts[1][0], name="y")
        return self.call(name, out, [a, b], reference)

    def joined(self, name: str, a: str, b: str) -> str:
        """*a* and *b*, rows of 8, one behind the other: copied to parts of one value."""
        parts = [self.values[a].shape, self.values[b].shape]
        self.value(name, (parts[0][0] + parts[1][0], 8))
        offset: Extent = 0
        for number, (given, shape) in enumerate(zip((a, b), parts, strict=True)):
            part = self.value(f"{name}_{number}", shape)
            self.subviews[part] = Subview(name, offset)
            offset = offset + shape[0] * 64
            self._plus_one(part, given)
        self.references[name] = lambda k: np.concatenate([k[f"{name}_0"], k[f"{name}_1"]])
        return name

    def tail(self, name: str, of: str, shape: Shape) -> str:
        """The last rows of *of*, rows of 8, which lie where they are."""
        before = self.values[of].shape[0] - shape[0]
        self.subviews[self.value(name, shape)] = Subview(of, before * 64)
        self.references[name] = lambda known: known[of][len(known[of]) - len(known["w"]) :]
        return name

    def _plus_one(self, name: str, a: str) -> str:
        x = placeholder(self.values[a].shape, DType.INT64, name="a")
        out = compute(x.shape, lambda *i: x[i] + 1, name="y")
        return self.call(name, out, [a], lambda known: known[a] + 1)

    def network(self, inputs: Sequence[str], outputs: Sequence[str]) -> Network:
        ends = [tuple(self.values[name] for name in names) for names in (inputs, outputs)]
        made = Network(ends[0], ends[1], self.values, tuple(self.calls), subviews=self.subviews)
        return made.with_arena()

    def results(self, feeds: Arrays, names: Sequence[str]) -> list[np.ndarray]:
        known = dict(feeds)
        for name, reference in self.references.items():
            known[name] = reference(known)
        return [known[name] for name in names]


def _alone(element: Expr, name: str) -> ComputeOp:
    return compute((1,), lambda _: element, name=name)


def shape_at(shape: Shape, sizes: Mapping[str, int]) -> tuple[int, ...]:
    return fixed_all(at(n, {dim: sizes[dim.name] for dim in dims_of([n])}) for n in shape)


def random_network(rng: np.random.Generator, calls: int = 9) -> tuple[Sized, Network]:
    """Values that live on for a while, joined, summed and combined at random."""
    made = Sized()
    inputs = [made.value("x", (N, 8)), made.value("z", (M * 2 - 1,)), made.value("w", (M, 8))]
    inputs.append(made.value("u", (N * 2 + M, 8)))
    names = [*inputs, made.tail("t", "u", (M, 8))]
    for number in range(calls):
        name, kind = f"v{number}", rng.integers(4)
        a = names[int(rng.integers(max(0, len(names) - 6), len(names)))]
        alike = [v for v in names if made.values[v].shape == made.values[a].shape]
        if kind == 0 and (N + M, 8) not in [made.values[v].shape for v in names]:
            whole = [v for v in names if made.values[v].shape in ((N, 8), (M, 8))]
            names.append(
                made.joined(name, *(whole[int(k)] for k in rng.integers(len(whole), size=2)))
            )
        elif kind <= 1:
            other = names[int(rng.integers(len(names)))]
            shape = SHAPES[int(rng.integers(len(SHAPES)))]
            names.append(made.total(name, a, other, shape))
        else:
            other = alike[int(rng.integers(len(alike)))]
            names.append(made.combined(name, a, other, int(rng.integers(2, 9))))
    rows = made.total("rows", names[-1], "x", (N, 8))
    last = made.total("last", rows, "w", (N, M))
    outputs = [made.combined("y", last, last, 3), made.total("s", names[-2], "z", (2,))]
    outputs.append(made.joined("j", rows, "t"))
    return made, made.network(inputs, outputs)


def tasks(network: Network, target: Target) -> dict[str, CompiledTask]:
    return {
        w.key: task_of(w.dag, f"task{n}", _scheduled, target)
        for n, w in enumerate(network.workloads())
    }


def _scheduled(state: State) -> State:
    """Rows in parallel, four at a time."""
    state, (outer, _) = state.split("y", state.stage("y").iters[0], (4,), tail="guard")
    return state.parallel("y", [outer])


def model(network: Network, target: str = "host", threads: int = 2) -> CompiledModel:
    machine = Target.host() if target == "host" else Target.parse(target)
    return CompiledModel.of(network, tasks(network, machine), target=machine, threads=threads)


def feeds(network: Network, sizes: Mapping[str, int], rng: np.random.Generator) -> Arrays:
    return {
        info.name: rng.integers(-50, 50, shape_at(info.shape, sizes)) for info in network.inputs
    }


def drawn_sizes(rng: np.random.Generator) -> dict[str, int]:
    """Often 0, 1, a prime or the largest."""
    return {
        "n": int(rng.choice([0, 1, 2, 7, 31, 37, int(rng.integers(38))])),
        "m": int(rng.choice([1, 2, 3, 13, 23, int(rng.integers(1, 24))])),
    }
