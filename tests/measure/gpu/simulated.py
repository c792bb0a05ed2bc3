"""The run worker of a simulated GPU, and candidates for it, right and wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansorpy.ir.analysis.overwrite import overwritable
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.extents import Extent
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import compute, placeholder
from ansorpy.measure.build.built import Built, ParamSpec
from ansorpy.measure.build.handlers import build_lowered
from ansorpy.measure.gpu.handlers import handlers_on, warm_up
from ansorpy.measure.result import MeasureResult
from ansorpy.measure.workers.worker import Handler
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from tests.codegen.cuda.simulated import GPU, SimulatedDevice, simulated_code

__all__ = ["FAULTS", "SimulatedBuilder", "doubling", "gpu_task", "scheduled", "simulated_built"]

N = 1920
FAULTS = (
    "", "wrong", "writes beyond", "writes before", "writes its input", "illegal access", "refused",
    "hangs",
)  # fmt: skip


def make_handlers() -> Mapping[str, Handler]:
    device = SimulatedDevice()
    warm_up(device)
    return handlers_on(device)


def doubling(extent: Extent = N, *, constant: bool = False) -> ComputeDAG:
    a = placeholder((extent,), name="A", constant=constant)
    b = placeholder((extent,), name="B")
    return ComputeDAG.of([a, b, compute((extent,), lambda i: a[i] * 2.0 + b[i], name="C")])


def gpu_task(dag: ComputeDAG, *, cold: bool = False) -> Task:
    return Task(dag, GPU, 1, reuse_distance_bytes=4 * GPU.l2_bytes if cold else 0, name="doubling")


def scheduled(dag: ComputeDAG, threads: int = 32) -> State:
    """The output cut into blocks of so many threads."""
    state, (outer, inner) = State.initial(dag).split("C", "i", (threads,))
    return state.bind("C", outer, "blockIdx.x").bind("C", inner, "threadIdx.x")


def simulated_built(state: State, *, seconds: float = 0.002, fault: str = "") -> Built:
    lowered = lower(state)
    params = tuple(ParamSpec.of(param) for param in lowered.run.params)
    code = simulated_code(state, seconds=seconds, fault=fault)
    return Built(code, params, dims=lowered.run.dims, overwrites=overwritable(lowered.run))


class SimulatedBuilder:
    """Builds for the simulated GPU; how many threads a block has says what is wrong with it.

    What is for the CPU, the reference, is built as always.
    """

    threads = (32, 64, 96, 128, 160, 192, 320, 384)

    def state(self, dag: ComputeDAG, fault: str) -> State:
        return scheduled(dag, self.threads[FAULTS.index(fault)])

    def build(self, task: Task, states: Sequence[State]) -> list[Built | MeasureResult]:
        return [self._built(task, state) for state in states]

    def _built(self, task: Task, state: State) -> Built:
        if task.target.backend == "llvm":
            return build_lowered(lower(state), task.target, "reference")
        threads = state.stage("C").iters[-1].extent or 0
        fault = FAULTS[self.threads.index(threads)]
        return simulated_built(state, fault=fault)

    def close(self) -> None:
        """Nothing to give up."""
