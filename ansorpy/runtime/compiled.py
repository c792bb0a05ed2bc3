"""A network compiled in this process, which can also be exported, and timed call by call."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ansorpy.codegen.llvm.objects.memory import aligned_empty
from ansorpy.codegen.llvm.threads.traced_runs import trace_of_runs
from ansorpy.errors import UsageError
from ansorpy.graph.network import Network
from ansorpy.ir.symbols import Dim
from ansorpy.quantities import latency_text, path_of, whole_of
from ansorpy.runtime.backends import runtime_of
from ansorpy.runtime.compiled_task import CompiledTask
from ansorpy.runtime.execution_plan import ExecutionPlan
from ansorpy.runtime.export import export
from ansorpy.runtime.footprint import Footprint
from ansorpy.runtime.in_memory import InMemory, load_plan
from ansorpy.runtime.model import Model, Runs, Signature
from ansorpy.runtime.planner import plan_network
from ansorpy.target import Target
from ansorpy.trace import Trace

__all__ = ["CompiledModel"]


class CompiledModel(Model):
    """The network of a plan; made by :meth:`of` or :func:`ansorpy.compile`.

    Constants are bound here: packed once into the order the code reads.  If this machine cannot run
    the plan's target, the model can only be exported.
    """

    def __init__(self, plan: ExecutionPlan, name: str = "model") -> None:
        self._loaded = load_plan(plan, "model") if plan.target.runs_on_host() else None
        # The loaded plan does not hold most of the original constants, so these can be freed.
        self._plan = plan if self._loaded is None else self._loaded.plan
        super().__init__(
            Signature(name, plan.inputs, plan.outputs, plan.threads, plan.pool_bytes, plan.aliases),
            None if self._loaded is None else self._loaded.executable,
            runtime_of(plan.target).operands,
        )

    @staticmethod
    def of(
        network: Network,
        tasks: Mapping[str, CompiledTask],
        *,
        target: Target,
        threads: int,
        name: str = "model",
        median_s: float | None = None,
    ) -> CompiledModel:
        """Make the model of *network*; *tasks* has the code of each workload by its key."""
        plan = plan_network(network, tasks, target=target, threads=threads, median_s=median_s)
        return CompiledModel(plan, name)

    @property
    def plan(self) -> ExecutionPlan:
        """Its calls, with the code and the memory of each."""
        return self._plan

    @property
    def footprint(self) -> Footprint:
        """The memory that a run needs, at the largest sizes of its dimensions."""
        return runtime_of(self._plan.target).footprint(self._plan)

    def profile(
        self, feeds: Mapping[str, Any], *, runs: int = 50, threads: int | None = None
    ) -> list[tuple[str, float]]:
        """Return the name and median seconds of each call, in order, measured within whole runs.

        The time of a call in a loop is that of all its iterations.

        Args:
            feeds: Every input by name.
            runs: Timed runs; one untimed run precedes them.

        Raises:
            UsageError: This model is for another machine, or *runs* is below 1.
        """
        runs = whole_of(runs, "runs")
        timed = self._in_memory().timed()
        run = self._prepared(timed.executable, feeds, threads)
        run()
        seconds = np.empty((runs, len(self._plan.steps)))
        for row in seconds:
            run()
            row[:] = timed.spent_ns * 1e-9
        medians = np.median(seconds, axis=0).tolist()
        return [(step.name, median) for step, median in zip(self._plan.steps, medians, strict=True)]

    def trace(
        self, feeds: Mapping[str, Any], *, runs: int = 3, threads: int | None = None
    ) -> Trace:
        """Return what each thread does, and when, in some runs: kernels, their parts, and waits.

        The first run is not traced.  Reading the clock takes some 50 ns for each part.

        Args:
            feeds: Every input by name.
            runs: Traced runs, one after the other.

        Raises:
            UsageError: This model is for another machine or a GPU, or *runs* is below 1.
        """
        runs = whole_of(runs, "runs")
        traced = self._in_memory().traced()
        run = self._prepared(traced.executable, feeds, threads)
        run()
        traced.recorder.clear()
        times = []
        for _ in range(runs):
            start = time.monotonic_ns()
            run()
            times.append((start, time.monotonic_ns()))
        if traced.recorder.lost:
            raise UsageError(
                f"{traced.recorder.lost} events of {runs} runs did not fit into a trace",
                hint="trace fewer runs",
            )
        names = [step.name for step in self._plan.steps]
        return trace_of_runs(self.name, names, times, traced.recorder.events())

    def kernels(self, sizes: Mapping[Dim, int]) -> list[int]:
        """How many GPU kernels each call launches at these *sizes*; 0 on CPUs."""
        count = runtime_of(self._plan.target).kernels
        return [count(step.code, [sizes[dim] for dim in step.dims]) for step in self._plan.steps]

    def export(self, path: str | Path, pack: str | None = None) -> Path:
        """Write the library *path*, ``<stem>.h`` and ``<stem>_example.c``; returns *path*.

        The suffix of *path* says its form (docs/guides/deployment.md).  *pack* says when constants
        that packing makes larger are packed: ``"at-init"``, the default, or ``"in-file"``.

        Raises:
            MissingDependency: There is no linker.
        """
        return export(self._plan, path_of(path, "a library"), pack)

    def _prepared(
        self, executable: Runs, feeds: Mapping[str, Any], threads: int | None
    ) -> Callable[[], None]:
        """A function that computes all outputs from *feeds* by *executable*."""
        arrays, outputs = self._fed(feeds)
        given = self._sharing.fill(arrays, self._none_given, outputs)
        results = [
            aligned_empty(port.shape, port.dtype) if array is None else array
            for port, array in zip(outputs, given, strict=True)
        ]
        return executable.prepare(arrays, results, self.threads if threads is None else threads)

    def _shown(self) -> tuple[dict[str, str | None], dict[str, str], list[str]]:
        facts, folded, tables = super()._shown()
        plan, names = self._plan, [step.name for step in self._plan.steps]
        alone = "" if plan.median_s is None else f", {latency_text(plan.median_s)} in all alone"
        facts |= {"target": plan.target.name, "calls": f"{len(names)}{alone}"}
        return facts, folded | {"Calls, in order": "\n".join(names)}, tables

    def _in_memory(self) -> InMemory:
        if self._loaded is None:
            raise UsageError(
                f"{self.name} is compiled for another machine: its calls cannot be timed here",
                hint="run profile on that machine, with the ONNX file and its records",
            )
        return self._loaded
