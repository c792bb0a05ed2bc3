"""Calls that may overlap do, and calls whose order matters keep it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from ansorpy.codegen.cuda.device.protocol import Order
from ansorpy.graph.network import Call, Network, TensorInfo
from ansorpy.ir.analysis.overwrite import overwritable
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr
from ansorpy.ir.loops import Role
from ansorpy.ir.tensor import compute, placeholder
from ansorpy.measure.build.built import Built, ParamSpec
from ansorpy.runtime.compiled import CompiledModel
from ansorpy.runtime.compiled_task import CompiledTask
from ansorpy.runtime.control import Argument, MemoryRegion
from ansorpy.runtime.execution_plan import PlanStep
from ansorpy.runtime.gpu.branches import CallAccess, accesses_of, branched
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from ansorpy.target import Target
from tests.codegen.cuda.simulated import GPU, SimulatedDevice, simulated_code


def ends_before(orders: Sequence[Order]) -> list[set[int]]:
    """For each call, those that certainly end before it begins."""
    found: list[set[int]] = []
    for number, order in enumerate(orders):
        direct = {n for n in range(number) if orders[n].branch == order.branch} | {*order.after}
        found.append(direct.union(*(found[n] for n in direct)))
    return found


@pytest.mark.parametrize("most", [1, 2, 4])
def test_calls_whose_order_matters_keep_it(most: int, rng: np.random.Generator) -> None:
    for _ in range(60):
        calls = []
        for _ in range(rng.integers(1, 14)):
            starts = rng.integers(0, 60, rng.integers(1, 4))
            calls.append(
                [
                    CallAccess(
                        "arena", int(at), int(at + rng.integers(1, 12)), bool(rng.integers(2))
                    )
                    for at in starts
                ]
            )
        orders = branched(calls, most)
        assert len({order.branch for order in orders}) <= most
        before = ends_before(orders)
        for late, call in enumerate(calls):
            for early in range(late):
                if any(a.conflicts(b) for a in call for b in calls[early]):
                    assert early in before[late]


def test_parallel_branches_go_side_by_side_and_join() -> None:
    def call(reads: Sequence[int], writes: int) -> list[CallAccess]:
        places = [(n, False) for n in reads] + [(writes, True)]
        return [CallAccess("arena", 64 * n, 64 * n + 64, is_written) for n, is_written in places]

    orders = branched([call([0], 1), call([1], 2), call([1], 3), call([2], 4), call([3, 4], 5)])
    assert orders == [Order(0), Order(0), Order(1, (0,)), Order(0), Order(0, (2,))]
    # Memory that is used again orders calls that have no data in common.
    orders = branched([call([0], 1), call([1], 2), call([0], 1)])
    assert [order.branch for order in orders] == [0, 0, 0]
    apart = branched([call([n], n + 10) for n in range(6)])
    assert [order.branch for order in apart] == [0, 1, 2, 3, 0, 1]


def test_slices_of_rows_are_apart_exactly_if_they_share_no_byte(rng: np.random.Generator) -> None:
    def slice_of(pitch: int, rows: int) -> tuple[CallAccess, set[int]]:
        first, width = sorted(rng.integers(0, pitch, 2))
        width = int(width - first) + 1
        start = int(first) + int(rng.integers(3)) * pitch
        size = DType.FLOAT32.bytes
        param = ParamSpec(
            name="y", shape=(rows, width), dtype=DType.FLOAT32, role=Role.OUTPUT,
            strides=(pitch, 1),
        )  # fmt: skip
        step = PlanStep(simulated_code(scheduled(1)), (Argument(MemoryRegion.ARENA, start * size),),
                    params=(param,))  # fmt: skip
        [access] = accesses_of(step)
        inside = {start + row * pitch + k for row in range(rows) for k in range(width)}
        return access, inside

    verdicts = set()
    for _ in range(100):
        pitch = int(rng.integers(2, 12))
        (one, its), (other, others) = slice_of(pitch, 3), slice_of(pitch, 4)
        meet = one.conflicts(other)
        assert meet == other.conflicts(one)
        if its & others:
            assert meet
        verdicts.add((meet, bool(its & others)))
    assert {(True, True), (False, False)} <= verdicts


ROWS = 3


def scheduled(inputs: int) -> State:
    """``y = 2 a + b ...`` over a stage in global memory, so that there is a workspace."""
    given = [placeholder((ROWS, 8), name=f"x{n}") for n in range(inputs)]
    double = compute((ROWS, 8), lambda i, j: given[0][i, j] * 2.0, name="double")

    def total(i: Expr, j: Expr) -> Expr:
        found = double[i, j] + 1.0
        for other in given[1:]:
            found = found + other[i, j]
        return found

    dag = ComputeDAG([compute((ROWS, 8), total, name="y")], given)
    state = State.initial(dag)
    for stage in ("double", "y"):
        state = state.bind(stage, "i", "blockIdx.x")
    return state


def task(inputs: int) -> CompiledTask:
    state = scheduled(inputs)
    lowered = lower(state, f"sum{inputs}")
    params = tuple(ParamSpec.of(param) for param in lowered.run.params)
    code = simulated_code(state, f"sum{inputs}")
    built = Built(code, params, overwrites=overwritable(lowered.run))
    return CompiledTask.of(state.definition, built, program=lowered.run)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> SimulatedDevice:
    made = SimulatedDevice()
    monkeypatch.setattr(Target, "gpus", lambda self: (0,) if self.backend == "cuda" else ())
    monkeypatch.setattr("ansorpy.runtime.gpu.runtime.device_for", lambda target: made)
    return made


def test_the_memory_of_a_run_has_the_workspace_of_each_branch(device: SimulatedDevice) -> None:
    tasks = {n: task(n) for n in (1, 2)}
    inputs = {"a": ("x",), "b": ("x",), "y": ("a", "b")}
    calls = tuple(
        Call(name, scheduled(len(given)).definition, given, {}, (name,))
        for name, given in inputs.items()
    )
    values = {name: TensorInfo(name, (ROWS, 8), DType.FLOAT32) for name in ("x", *inputs)}
    network = Network((values["x"],), (values["y"],), values, calls).with_arena()
    by_key = {call.key: tasks[len(call.inputs)] for call in calls}
    model = CompiledModel.of(network, by_key, target=GPU, threads=1)
    each = tasks[1].built.run.shared_bytes
    assert each and model.footprint.workspace == 2 * each
    assert model.footprint.peak is not None
    assert sum(map(len, device.live.values())) <= model.footprint.peak


def test_results_do_not_depend_on_the_order_of_branches(
    rng: np.random.Generator, device: SimulatedDevice
) -> None:
    tasks = {n: task(n) for n in (1, 2, 3)}
    dags = {n: scheduled(n).definition for n in tasks}
    overlapped = 0
    for _ in range(6):
        names, calls = ["x"], []
        for number in range(12):
            made, count = f"v{number}", int(rng.integers(1, 4))
            inputs = tuple(str(name) for name in rng.choice(names[-6:], count))
            calls.append(Call(made, dags[count], inputs, {}, (made,)))
            names.append(made)
        values = {name: TensorInfo(name, (ROWS, 8), DType.FLOAT32) for name in names}
        outputs = (values[names[-1]], values[names[-2]])
        network = Network((values["x"],), outputs, values, tuple(calls)).with_arena()
        device.calls.clear()
        by_key = {call.key: tasks[len(call.inputs)] for call in calls}
        model = CompiledModel.of(network, by_key, target=GPU, threads=1)
        for _ in range(4):
            x = rng.integers(-9, 9, (ROWS, 8)).astype(np.float32)
            known = {"x": x}
            for call in calls:
                first, *others = (known[name] for name in call.inputs)
                known[call.name] = sum(others, first * 2 + 1)
            for got, info in zip(model.run(None, {"x": x}), outputs, strict=True):
                np.testing.assert_array_equal(got, known[info.name])
        overlapped += "overlap" in device.calls
    assert overlapped >= 3
