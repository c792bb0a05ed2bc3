"""Time the calls of a network one by one, or predict their times, and say what limits them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ansorpy.api.evaluate.engine import random_inputs
from ansorpy.api.evaluate.libraries import is_library
from ansorpy.api.evaluate.lookup import Lookup
from ansorpy.api.evaluate.models import from_records
from ansorpy.cost.bound import limits_of
from ansorpy.errors import UsageError
from ansorpy.evaluation.profile import CallTime
from ansorpy.ir.rewrite.sizes import dag_at
from ansorpy.ir.symbols import Dim
from ansorpy.measure.gpu.devices import gpus_of
from ansorpy.measure.probe.calibrate import calibrated
from ansorpy.measure.workers.locks import Undisputed
from ansorpy.runtime.sizes import sizes_told, told_by
from ansorpy.tasks.predict import predicted_seconds
from ansorpy.trace import Trace

if TYPE_CHECKING:
    from ansorpy.api.networks import Finished
    from ansorpy.api.tuner import Chosen
    from ansorpy.evaluation.engines.protocol import Shapes
    from ansorpy.ir.dag import ComputeDAG
    from ansorpy.runtime.compiled import CompiledModel
    from ansorpy.runtime.footprint import Footprint

__all__ = ["predictions_of", "profiles_of", "trace_of"]


def profiles_of(lookup: Lookup, sizes: Sequence[Shapes], seed: int) -> list[list[CallTime]]:
    """Time each call of the network, compiled from its records, on inputs drawn with *seed*.

    This is done for each of *sizes*: the shapes of all inputs.

    Raises:
        UsageError: The file is a library, in which all calls are inside a single function.
    """
    finished, model = _opened(lookup)
    profiles = []
    alone = Undisputed([gpu.place for gpu in gpus_of(finished.project.target)])
    for shapes in sizes:
        feeds = model.with_room(random_inputs(model, shapes, seed))
        with alone.held():
            times = model.profile(feeds)
        calls = _Calls(finished, model, _sizes(model, shapes))
        profiles.append([calls.time(n, seconds) for n, (_, seconds) in enumerate(times)])
    return profiles


def trace_of(lookup: Lookup, shapes: Shapes, seed: int) -> Trace:
    """What each thread does in some runs of the network, on inputs of *shapes* drawn with *seed*.

    Raises:
        UsageError: The file is a library, or the network runs on a GPU.
    """
    _, model = _opened(lookup)
    feeds = model.with_room(random_inputs(model, shapes, seed))
    with Undisputed().held():
        return model.trace(feeds, threads=lookup.arguments.get("threads"))


def _opened(lookup: Lookup) -> tuple[Finished, CompiledModel]:
    if is_library(lookup.model):
        raise UsageError(
            f"{lookup.model} is a library: its calls cannot be timed one by one",
            hint="give the ONNX file instead, with the records it was made from: --db FILE "
            "(db= in Python)",
        )
    return from_records(lookup)


def predictions_of(lookup: Lookup) -> tuple[list[CallTime], Footprint]:
    """Predict the time of each call of the network, and the memory of a run, without running it.

    Raises:
        UsageError: The network has open sizes, or the file is a library.
    """
    if is_library(lookup.model):
        raise UsageError(
            f"{lookup.model} is a library, which does not say what its calls compute",
            hint="give the ONNX file instead, with --db naming the records it was made from",
        )
    if lookup.project.is_sized:
        raise UsageError(
            f"{lookup.model} has dimensions, on which the times of its calls depend",
            hint="give each a size, with --dim NAME=N",
        )
    finished, model = from_records(lookup)
    calls = _Calls(finished, model, {})
    count = len(finished.project.network.calls)
    return [calls.time(n, calls.predicted_s(n)) for n in range(count)], model.footprint


class _Calls:
    """The calls of a network where its dimensions have the *known* sizes."""

    def __init__(self, finished: Finished, model: CompiledModel, known: dict[Dim, int]) -> None:
        network = finished.project.network
        keys = (workload.key for workload in network.workloads())
        self._programs = dict(zip(keys, finished.chosen, strict=True))
        self._calls = network.calls
        self._known = known | {c.dim: c.dim.high for c in network.counts}
        self._machine = calibrated(finished.project.target)
        self._kernels = model.kernels(self._known)

    def time(self, number: int, seconds: float) -> CallTime:
        """Call *number*, which takes *seconds*."""
        call = self._calls[number]
        program, kernels = self._programs[call.key], self._kernels[number]
        sizes = [self._known[dim] for dim in call.dag.dims]
        # Calls of one program may depend on different dimensions, matched by position.
        task = program.task
        at_task = dag_at(task.dag, dict(zip(task.dag.dims, sizes, strict=True)))
        # Use the definition that was scheduled: Winograd needs fewer products than the original.
        scheduled = _part(program, sizes)
        limits = limits_of(replace(task, dag=at_task, target=self._machine), scheduled, kernels)
        return CallTime(call.name, seconds, program.median_s, limits, kernels)

    def predicted_s(self, number: int) -> float:
        """What the analytic model predicts for call *number*."""
        program = self._programs[self._calls[number].key]
        return predicted_seconds(replace(program.task, target=self._machine), program.state)


def _sizes(model: CompiledModel, shapes: Shapes) -> dict[Dim, int]:
    """The size of each dimension of *model* where its inputs have these *shapes*."""
    inputs = model.get_inputs()
    return sizes_told(inputs, told_by(inputs), [shapes.get(p.name, p.shape) for p in inputs])


def _part(program: Chosen, sizes: Sequence[int]) -> ComputeDAG:
    """The scheduled definition of the part of *program* that serves *sizes*, at these sizes."""
    for state in program.states:
        dims = state.definition.dims
        if all(dim.low <= size <= dim.high for dim, size in zip(dims, sizes, strict=True)):
            return dag_at(state.definition, dict(zip(dims, sizes, strict=True)))
    raise AssertionError("a program serves all sizes")
