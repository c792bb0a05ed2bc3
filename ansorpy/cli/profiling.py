"""Time the calls of a network one by one, for ``bench --profile``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ansorpy.cli.engine import random_inputs
from ansorpy.cli.lookup import Lookup
from ansorpy.cli.models import from_records, is_library
from ansorpy.cost.bound import least_seconds
from ansorpy.errors import UsageError
from ansorpy.ir.rewrite.sizes import dag_at
from ansorpy.ir.symbols import Dim
from ansorpy.measure.probe.calibrate import calibrated
from ansorpy.report.profile import CallTime
from ansorpy.runtime.sizes import sizes_told, told_by

if TYPE_CHECKING:
    from ansorpy.api.tuner import Chosen
    from ansorpy.ir.dag import ComputeDAG
    from ansorpy.report.engines.protocol import Shapes
    from ansorpy.runtime.compiled import CompiledModel
    from ansorpy.target import Target

__all__ = ["profiles_of"]


def profiles_of(lookup: Lookup, sizes: Sequence[Shapes], seed: int) -> list[list[CallTime]]:
    """Time each call of the network, compiled from its records, on inputs drawn with *seed*.

    This is done for each of *sizes*: the shapes of all inputs.

    Raises:
        UsageError: The file is a library, in which all calls are inside a single function.
    """
    if is_library(lookup.model):
        raise UsageError(
            f"{lookup.model} is a library: its calls cannot be timed one by one",
            hint="give the ONNX file instead, with --db naming the records it was made from",
        )
    finished, model = from_records(lookup)
    network = finished.project.network
    programs = dict(zip((w.key for w in network.workloads()), finished.chosen, strict=True))
    machine = calibrated(finished.project.target)
    profiles = []
    for shapes in sizes:
        known = _sizes(model, shapes) | {c.dim: c.dim.high for c in network.counts}
        feeds = model.with_room(random_inputs(model, shapes, seed))
        times = model.profile(feeds)
        profiles.append([
            _call_time(name, seconds, call.dag, programs[call.key], known, machine)
            for call, (name, seconds) in zip(network.calls, times, strict=True)
        ])  # fmt: skip
    return profiles


def _sizes(model: CompiledModel, shapes: Shapes) -> dict[Dim, int]:
    """The size of each dimension of *model* where its inputs have these *shapes*."""
    inputs = model.get_inputs()
    return sizes_told(inputs, told_by(inputs), [shapes.get(p.name, p.shape) for p in inputs])


def _call_time(
    name: str, inside_s: float, dag: ComputeDAG, program: Chosen, known: dict[Dim, int],
    machine: Target,
) -> CallTime:  # fmt: skip
    """The time of one call of *dag* by *program*, where dimensions have the *known* sizes."""
    task = program.task
    sizes = [known[dim] for dim in dag.dims]
    # Calls of one program may depend on different dimensions, matched by position.
    at_task = dag_at(task.dag, dict(zip(task.dag.dims, sizes, strict=True)))
    # Use the definition that was scheduled: Winograd needs fewer products than the original.
    scheduled = _part(program, sizes)
    least_s = least_seconds(replace(task, dag=at_task, target=machine), scheduled)
    return CallTime(name, inside_s, program.median_s, least_s)


def _part(program: Chosen, sizes: Sequence[int]) -> ComputeDAG:
    """The scheduled definition of the part of *program* that serves *sizes*, at these sizes."""
    for state in program.states:
        dims = state.definition.dims
        if all(dim.low <= size <= dim.high for dim, size in zip(dims, sizes, strict=True)):
            return dag_at(state.definition, dict(zip(dims, sizes, strict=True)))
    raise AssertionError("a program serves all sizes")
