"""Time the calls of a network one by one, for ``bench --profile``."""

from __future__ import annotations

from dataclasses import replace

from ansorpy.cli.lookup import Lookup
from ansorpy.cli.models import from_records, is_library
from ansorpy.cost.bound import least_seconds
from ansorpy.errors import UsageError
from ansorpy.measure.probe.calibrate import calibrated
from ansorpy.report.inputs import random_value
from ansorpy.report.profile import CallTime

__all__ = ["profile_of"]


def profile_of(lookup: Lookup, seed: int) -> list[CallTime]:
    """Time each call of the network, compiled from its records, on inputs drawn with *seed*.

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
    feeds = {i.name: random_value(i.shape, i.dtype, seed, i.name) for i in model.get_inputs()}
    programs = dict(zip((w.key for w in network.workloads()), finished.chosen, strict=True))
    machine = calibrated(finished.project.target)
    calls = []
    for call, (name, seconds) in zip(
        network.calls, model.profile(model.with_room(feeds)), strict=True
    ):
        program = programs[call.key]
        # Use the definition that was scheduled: Winograd needs fewer products than the original.
        least_s = least_seconds(replace(program.task, target=machine), program.state.definition)
        calls.append(CallTime(name, seconds, program.median_s, least_s))
    return calls
