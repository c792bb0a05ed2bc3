"""Small compiled tasks and a network of them, the way the search would hand them over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto

from ansorpy.frontend.onnx import load
from ansorpy.graph import optimize, partition
from ansorpy.graph.memory import ArenaPlan
from ansorpy.graph.network import Call, Network, TensorInfo
from ansorpy.ir.builders import maximum, sum
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.tensor import compute, placeholder, reduce_axis
from ansorpy.measure.build.handlers import build_lowered
from ansorpy.runtime.compiled import CompiledModel
from ansorpy.runtime.compiled_task import CompiledTask
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from ansorpy.target import Target

Floats = NDArray[np.float32]
Schedule = Callable[[State], State]

N, K, M = 5, 12, 32


def dense(names: str = "XWB") -> ComputeDAG:
    """``relu(X[N, K] W[K, M] + B[M] * 2)`` with constant W and B; stage ``D`` is bind-time."""
    x = placeholder((N, K), name=names[0])
    w = placeholder((K, M), name=names[1], constant=True)
    b = placeholder((M,), name=names[2], constant=True)
    k = reduce_axis(K, name="k")
    double = compute((M,), lambda j: b[j] * 2.0, name="D")
    product = compute((N, M), lambda i, j: sum(x[i, k] * w[k, j], axis=k), name="P")
    out = compute((N, M), lambda i, j: maximum(product[i, j] + double[j], 0.0), name="Y")
    return ComputeDAG([out], [x, w, b])


def expected_dense(x: Floats, w: Floats, b: Floats) -> Floats:
    result: Floats = np.maximum(x @ w + 2 * b, np.float32(0))
    return result


def tail() -> ComputeDAG:
    """``S[N] = sum of Y's rows``, and ``T = Y + 1``: two outputs, no constant."""
    y = placeholder((N, M), name="Y")
    k = reduce_axis(M, name="k")
    total = compute((N,), lambda i: sum(y[i, k], axis=k), name="S")
    return ComputeDAG([total, compute((N, M), lambda i, j: y[i, j] + 1.0, name="T")], [y])


def constant_chain() -> ComputeDAG:
    """``X * ((2 B + 1) + B)``: two stages on constants alone, the first read by the second only."""
    x, b = placeholder((M,), name="X"), placeholder((M,), name="B", constant=True)
    double = compute((M,), lambda j: b[j] * 2.0, name="D")
    odd = compute((M,), lambda j: double[j] + 1.0, name="E")
    return ComputeDAG([compute((M,), lambda j: x[j] * (odd[j] + b[j]), name="Y")], [x, b])


def packed(state: State) -> State:
    """W re-laid in panels of 20 columns at bind time, the second padded; panels in parallel."""
    state, _ = state.split("P", "j", (20,))
    state = state.reorder("P", ["j.0", "i", "k", "j.1"])
    state = state.pack("P", "W")
    return state.parallel("P", ["j.0"])


def task_of(
    dag: ComputeDAG,
    symbol: str,
    schedule: Schedule = lambda state: state,
    target: Target | None = None,
) -> CompiledTask:
    state = schedule(State.initial(dag))
    lowered = lower(state)
    built = build_lowered(lowered, target or Target.host(), symbol)
    return CompiledTask.of(dag, built, program=lowered.run, median_s=2e-3)


def constants(rng: np.random.Generator) -> tuple[Floats, Floats]:
    return (
        rng.standard_normal((K, M), dtype=np.float32),
        rng.standard_normal((M,), dtype=np.float32),
    )


def network(layers: list[tuple[Floats, Floats]]) -> Network:
    """Two dense layers side by side on ``x``, their rows summed: outputs ``first``, ``S``, ``T``.

    The second layer names its placeholders otherwise.  ``second`` lives in the arena, behind an
    unused stretch.
    """
    calls = [
        Call(name, dag, ("x",), {w.name: layer[0], b.name: layer[1]}, (name,))
        for name, dag, layer in zip(
            ("first", "second"), (dense(), dense("ABC")), layers, strict=True
        )
        for _, w, b in [dag.args]
    ]
    calls.append(Call("tail", tail(), ("second",), {}, ("sum/rows", "plus one")))
    f32 = DType.FLOAT32
    inputs = (TensorInfo("x", (N, K), f32),)
    outputs = (
        TensorInfo("first", (N, M), f32),
        TensorInfo("sum/rows", (N,), f32),
        TensorInfo("plus one", (N, M), f32),
    )
    values = {t.name: t for t in (*inputs, *outputs, TensorInfo("second", (N, M), f32))}
    arena = ArenaPlan({"second": 128}, 128 + 4 * N * M)
    return Network(inputs, outputs, values, tuple(calls), arena)


def tasks(net: Network, target: Target | None = None) -> dict[str, CompiledTask]:
    dense_key, tail_key = (w.key for w in net.workloads())
    return {
        dense_key: task_of(net.calls[0].dag, "dense_task", packed, target),
        tail_key: task_of(tail(), "tail_task", target=target),
    }


def expected(layers: list[tuple[Floats, Floats]], x: Floats) -> list[Floats]:
    first, second = (expected_dense(x, w, b) for w, b in layers)
    return [first, second.sum(axis=1), second + 1]


def model(
    rng: np.random.Generator, threads: int = 2
) -> tuple[CompiledModel, list[tuple[Floats, Floats]]]:
    layers = [constants(rng), constants(rng)]
    net = network(layers)
    made = CompiledModel.of(net, tasks(net), target=Target.host(), threads=threads, name="demo")
    return made, layers


def feed(rng: np.random.Generator) -> Floats:
    return rng.standard_normal((N, K), dtype=np.float32)


def plain_model(source: ModelProto, target: str | None = None, **sizes: Any) -> CompiledModel:
    """The model of *source* with the default schedule of each kernel."""
    net = partition(optimize(load(source, **sizes)))
    machine = Target.host() if target is None else Target.parse(target)
    plain = {
        w.key: task_of(w.dag, f"task{n}", target=machine) for n, w in enumerate(net.workloads())
    }
    return CompiledModel.of(net, plain, target=machine, threads=1)
