"""Random small definitions and random schedules of them, for property tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import get_args

import numpy as np

from ansorpy.errors import ScheduleError
from ansorpy.ir import builders as b
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Axis, AxisKind, Expr
from ansorpy.ir.extents import Extent, dim, dims_of, least
from ansorpy.ir.strides import dense_strides
from ansorpy.ir.symbols import Dim
from ansorpy.ir.tensor import ComputeOp, PlaceholderOp, Tensor, compute, placeholder, reduce_axis
from ansorpy.schedule.stage import Iter, Tail
from ansorpy.schedule.state import State
from tests.properties.random_elements import Elements, accumulated, number, random_type, reducers
from tests.properties.random_operators import random_definition

Action = Callable[[State, str, np.random.Generator], State]
Types = Sequence[DType]
Tensors = list[Tensor]
Draw = Callable[[np.random.Generator], Extent]
"""Draws an extent."""
TAILS: tuple[Tail, ...] = get_args(Tail)
EXTENTS = (1, 2, 3, 4, 5, 7, 8, 12)


def _number(rng: np.random.Generator) -> Extent:
    return int(rng.choice(EXTENTS))


def _number_type(rng: np.random.Generator, types: Types) -> DType:
    return random_type(rng, [t for t in types if t is not DType.BOOL])


def _float_type(rng: np.random.Generator, types: Types) -> DType:
    return random_type(rng, [t for t in types if t.is_float])


def _sum_type(rng: np.random.Generator, factors: DType) -> DType:
    return accumulated(factors) if rng.integers(2) else factors


def matmul(rng: np.random.Generator, types: Types, extent: Draw) -> Tensors:
    n, m, k = (extent(rng) for _ in range(3))
    kind = _number_type(rng, types)
    wide = _sum_type(rng, kind)
    x = placeholder((n, k), kind, name="X")
    constant = bool(rng.integers(2)) and not dims_of([k, m])
    w = placeholder((k, m), kind, name="W", constant=constant)
    r = reduce_axis(k, name="k")
    c = compute(
        (n, m), lambda i, j: b.sum(x[i, r].astype(wide) * w[r, j].astype(wide), axis=r), name="C"
    )
    bias = placeholder((m,), kind, name="bias", constant=not dims_of([m]))
    d = compute((n, m), lambda i, j: c[i, j] + bias[j].astype(wide), name="D")
    e = compute((n, m), lambda i, j: b.maximum(d[i, j], 0).astype(kind), name="E")
    return [x, w, bias, e]


def conv(rng: np.random.Generator, types: Types, extent: Draw) -> Tensors:
    """A strided, padded, dilated 1-d convolution over (width, channels)."""
    width, ci, co = extent(rng) + 4, extent(rng), extent(rng)
    kernel, stride, pad, dilation = (int(rng.integers(1, 4)) for _ in range(4))
    pad = min(pad, kernel) - 1
    reach = (kernel - 1) * dilation + 1
    if reach > least(width) + 2 * pad:
        kernel, reach = 1, 1
    out = (width + 2 * pad - reach) // stride + 1
    kind = _number_type(rng, types)
    wide = _sum_type(rng, kind)
    x = placeholder((width, ci), kind, name="X")
    w = placeholder((kernel, ci, co), kind, name="W", constant=not dims_of([ci, co]))
    padded = compute(
        (width + 2 * pad, ci),
        lambda i, c: b.select((i >= pad) & (i < width + pad), x[i - pad, c], number(0, kind)),
        name="pad",
    )
    rk, rc = reduce_axis(kernel, name="rk"), reduce_axis(ci, name="rc")

    def product(i: Axis, c: Axis) -> Expr:
        return padded[i * stride + rk * dilation, rc].astype(wide) * w[rk, rc, c].astype(wide)

    y = compute((out, co), lambda i, c: b.sum(product(i, c), axis=(rk, rc)), name="Y")
    z = compute((out, co), lambda i, c: b.maximum(y[i, c], number(0.25, wide)), name="Z")
    return [x, w, z]


def softmax(rng: np.random.Generator, types: Types, extent: Draw) -> Tensors:
    n, m = extent(rng), extent(rng)
    x = placeholder((n, m), _float_type(rng, types), name="X")
    k = reduce_axis(m, name="k")
    top = compute((n,), lambda i: b.max(x[i, k], axis=k), name="top")
    e = compute((n, m), lambda i, j: b.exp(x[i, j] - top[i]), name="e")
    k2 = reduce_axis(m, name="k")
    total = compute((n,), lambda i: b.sum(e[i, k2], axis=k2), name="total")
    return [x, compute((n, m), lambda i, j: e[i, j] / total[i], name="S")]


def pool(rng: np.random.Generator, types: Types, extent: Draw) -> Tensors:
    n, window, stride = extent(rng) + 3, int(rng.integers(1, 4)), int(rng.integers(1, 3))
    out = (n - window) // stride + 1
    kind = random_type(rng, types)
    best = reducers(kind)[int(rng.integers(len(reducers(kind))))]
    slight = Elements(rng).slight(kind)
    x = placeholder((n, 5), kind, name="X")
    k = reduce_axis(window, name="k")
    top = compute((out, 5), lambda i, c: best(x[i * stride + k, c], axis=k), name="P")
    return [x, compute((out, 5), lambda i, c: slight(top[i, c]), name="Q")]


def elementwise(rng: np.random.Generator, types: Types, extent: Draw) -> Tensors:
    n, m = extent(rng), extent(rng)
    kind, elements = random_type(rng, types), Elements(rng)
    x, y = placeholder((n, m), kind, name="X"), placeholder((m,), kind, name="Y")
    two, one = elements.binary(kind), elements.unary(kind)
    t = compute((m, n), lambda i, j: x[j, i], name="T")
    u = compute((m, n), lambda i, j: two(t[i, j], y[i]), name="U")
    shuffled = compute((m * n,), lambda i: one(u[i // n, i % n]), name="V")
    return [x, y, shuffled, u]


def norms(rng: np.random.Generator, types: Types, extent: Draw) -> Tensors:
    """The norms of matrices, and the matrices divided by them."""
    n, h, w = (extent(rng) for _ in range(3))
    x = placeholder((n, h, w), _float_type(rng, types), name="X")
    r, c = reduce_axis(h, name="r"), reduce_axis(w, name="c")
    squares = compute((n,), lambda i: b.sum(x[i, r, c] * x[i, r, c], axis=(r, c)), name="squares")
    norm = compute((n,), lambda i: b.sqrt(squares[i] + 1.0), name="norm")
    return [x, compute((n, h, w), lambda i, j, k: x[i, j, k] / norm[i], name="unit")]


def diamond(
    rng: np.random.Generator, types: Types = (DType.FLOAT32,), extent: Draw = _number
) -> Tensors:
    """Two readers of one stage, each with its own length, halo and offset, and what reads both."""
    n, offset, beyond = extent(rng), int(rng.integers(4)), int(rng.integers(4))
    kind = _number_type(rng, types)
    x = placeholder((n + offset + beyond + 3,), kind, name="X")
    p = compute(x.shape, lambda i: x[i] * 2, name="P")
    q = compute((n + beyond,), lambda i: p[i + offset] * 3, name="Q")
    r = compute((n,), lambda i: p[i] + p[i + int(rng.integers(3))], name="R")
    before, after = int(rng.integers(3)), int(rng.integers(3))

    def both(i: Axis) -> Expr:
        earlier = b.select(i >= before, q[i - before], number(0, kind))
        return r[i] + earlier + b.select(i < n - after, q[i + after], number(0, kind))

    return [x, compute((n,), both, name="D")]


DEFINITIONS: tuple[Callable[[np.random.Generator, Types, Draw], Tensors], ...] = (
    matmul, conv, softmax, pool, elementwise, norms, diamond,
)  # fmt: skip


def random_state(
    rng: np.random.Generator, steps: int, types: Types = (DType.FLOAT32,), others: float = 0.0
) -> State:
    """A random definition under up to *steps* random primitives (refused ones are left out).

    A share of *others* are random operators.
    """
    definition = spread(_definition(rng, types, others), rng)
    return _under(ACTIONS, State.initial(definition), steps, rng)


def random_bound_state(
    rng: np.random.Generator, steps: int, types: Types = (DType.FLOAT32,), others: float = 0.0
) -> State:
    """A random definition under random bindings to GPU indices, places and memories.

    Most of them are illegal in ways that only the whole schedule shows.
    """
    return _under(BINDINGS, State.initial(_definition(rng, types, others)), steps, rng)


def random_sized_state(
    rng: np.random.Generator, steps: int, types: Types = (DType.FLOAT32,), *, apart: bool = True
) -> State:
    """A random definition with extents that depend on dimensions, under random primitives.

    With *apart*, some inputs and outputs are parts of larger tensors.
    """
    made = random_sized_definition(rng, types, 11)
    definition = spread(made, rng) if apart else made
    return _under(ACTIONS, State.initial(definition), steps, rng)


def random_sized_definition(rng: np.random.Generator, types: Types, longest: int) -> ComputeDAG:
    """A random definition with extents that depend on dimensions of up to *longest* steps."""
    extent = _drawn_from([_dimension(name, rng, longest) for name in ("n", "m")])
    while True:
        made = ComputeDAG.of(DEFINITIONS[int(rng.integers(len(DEFINITIONS)))](rng, types, extent))
        if made.dims:
            return made


def _dimension(name: str, rng: np.random.Generator, longest: int) -> Extent:
    step = int(rng.choice([1, 1, 1, 2, 4]))
    low = int(rng.choice([0, 1, 1, 3, 8])) * step
    return dim(name, low, low + step * int(rng.integers(1, longest + 1)), step=step)


def drawn_sizes(dims: tuple[Dim, ...], rng: np.random.Generator) -> dict[Dim, int]:
    """A size for each of *dims*, often an end of its range."""
    return {
        dim: int(rng.choice([dim.low, dim.high, *range(dim.low, dim.high + 1, dim.step)]))
        for dim in dims
    }


def _drawn_from(dims: Sequence[Extent]) -> Draw:
    def draw(rng: np.random.Generator) -> Extent:
        n, kind = dims[int(rng.integers(len(dims)))], int(rng.integers(8))
        return n if kind < 4 else {4: n + 3, 5: (n + 1) // 2, 6: n * 2}.get(kind, _number(rng))

    return draw


def _definition(rng: np.random.Generator, types: Types, others: float) -> ComputeDAG:
    if rng.random() < others:
        return random_definition(rng, types, more=0.4)
    return ComputeDAG.of(DEFINITIONS[int(rng.integers(len(DEFINITIONS)))](rng, types, _number))


def _under(actions: Sequence[Action], state: State, steps: int, rng: np.random.Generator) -> State:
    """*state* under *steps* random ones of *actions*."""
    for _ in range(steps):
        action = actions[int(rng.integers(len(actions)))]
        stages = [s for s in state.stages if not s.is_placeholder]
        try:
            state = action(state, stages[int(rng.integers(len(stages)))].name, rng)
        except ScheduleError:
            continue
    return state


def spread(dag: ComputeDAG, rng: np.random.Generator) -> ComputeDAG:
    """*dag* with some inputs and outputs as parts of larger tensors."""
    strides = {}
    for op in (*dag.args, *dag.outputs):
        if op.shape and rng.integers(2) and not (isinstance(op, PlaceholderOp) and op.constant):
            more = (int(rng.integers(3)) * int(rng.choice([1, 16])) for _ in op.shape[1:])
            wider = (e + m for e, m in zip(op.shape[1:], more, strict=True))
            strides[op.name] = dense_strides((1, *wider))
    return ComputeDAG(dag.outputs, dag.args, strides)


def _loops(state: State, stage: str) -> Sequence[Iter]:
    iters = state.stage(stage).iters
    if not iters:
        raise ScheduleError("no loops")
    return iters


def _pick(state: State, stage: str, rng: np.random.Generator) -> str:
    iters = _loops(state, stage)
    return iters[int(rng.integers(len(iters)))].name


def _split(state: State, stage: str, rng: np.random.Generator) -> State:
    factors = [int(rng.integers(1, 6)) for _ in range(int(rng.integers(1, 4)))]
    tail = TAILS[int(rng.integers(len(TAILS)))]
    return state.split(stage, _pick(state, stage, rng), factors, tail=tail)[0]


def _fuse(state: State, stage: str, rng: np.random.Generator) -> State:
    iters = _loops(state, stage)
    at = int(rng.integers(len(iters)))
    return state.fuse(stage, iters[at : at + 2])[0]


def _reorder(state: State, stage: str, rng: np.random.Generator) -> State:
    iters = list(state.stage(stage).iters)
    return state.reorder(stage, [iters[n] for n in rng.permutation(len(iters))])


def _compute_at(state: State, stage: str, rng: np.random.Generator) -> State:
    readers = state.current_dag.readers(state.stage(stage).op)
    if not readers:
        raise ScheduleError("nobody reads it")
    target = readers[int(rng.integers(len(readers)))].name
    return state.compute_at(stage, target, _pick(state, target, rng))


def _reverse(state: State, stage: str, rng: np.random.Generator) -> State:
    producers = [
        p for p in state.current_dag.reads(state.stage(stage).op) if isinstance(p, ComputeOp)
    ]
    if not producers:
        raise ScheduleError("it reads placeholders only")
    target = producers[int(rng.integers(len(producers)))].name
    return state.reverse_compute_at(stage, target, _pick(state, target, rng))


def _vectorize(state: State, stage: str, rng: np.random.Generator) -> State:
    return state.vectorize(stage, _loops(state, stage)[-int(rng.integers(1, 3)) :])


def _parallel(state: State, stage: str, rng: np.random.Generator) -> State:
    iters = state.stage(stage).iters
    if state.stage(stage).attach is not None:
        raise ScheduleError("only root stages")
    outer = []
    for it in iters:
        if it.kind is not AxisKind.SPACE:
            break
        outer.append(it)
    if not outer:
        raise ScheduleError("no space loop outside")
    return state.parallel(stage, outer, count=int(rng.integers(1, len(outer) + 1)))


def _cache_read(state: State, stage: str, rng: np.random.Generator) -> State:
    read = list(state.current_dag.reads(state.stage(stage).op))
    if not read:
        raise ScheduleError("it reads nothing")
    source = read[int(rng.integers(len(read)))]
    order = [int(d) for d in rng.permutation(source.ndim)] if rng.integers(2) else []
    return state.cache_read(source.name, "local", [stage], order)[0]


def _pack(state: State, stage: str, rng: np.random.Generator) -> State:
    constants = [
        p for p in state.current_dag.reads(state.stage(stage).op)
        if isinstance(p, PlaceholderOp) and p.constant
    ]  # fmt: skip
    if not constants or state.stage(stage).inlined:
        raise ScheduleError("no constants")
    return state.pack(stage, constants[0].name)


ACTIONS: tuple[Action, ...] = (
    _split, _split, _fuse, _reorder, _compute_at, _compute_at, _reverse, _vectorize, _parallel,
    _cache_read, _pack,
    lambda s, n, rng: s.compute_inline(n),
    lambda s, n, rng: s.unroll(n, _pick(s, n, rng)),
    lambda s, n, rng: s.pragma_unroll(n, int(rng.choice([0, 4, 16, 64]))),
    lambda s, n, rng: s.cache_write(n, "local")[0],
    lambda s, n, rng: s.rfactor(n, _pick(s, n, rng), 0)[0],
    lambda s, n, rng: s.compute_root(n),
    lambda s, n, rng: s.split_lanes(n, _pick(s, n, rng), int(rng.integers(1, 20)))[0],
    lambda s, n, rng: s.split_lanes(n, _loops(s, n)[-1], int(rng.integers(1, 20)))[0],
)  # fmt: skip


def _bind(state: State, stage: str, rng: np.random.Generator) -> State:
    index = ("blockIdx.x", "blockIdx.y", "threadIdx.x", "threadIdx.y", "vthread")
    return state.bind(stage, _pick(state, stage, rng), index[int(rng.integers(len(index)))])


def _set_scope(state: State, stage: str, rng: np.random.Generator) -> State:
    return state.set_scope(stage, ("local", "shared", "workspace")[int(rng.integers(3))])


BINDINGS: tuple[Action, ...] = (
    _split, _bind, _bind, _compute_at, _compute_at, _compute_at, _set_scope, _reorder,
    lambda s, n, rng: s.compute_inline(n),
)  # fmt: skip
