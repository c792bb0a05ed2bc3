"""One check of the smoke and correctness stages on a simulated GPU: its name is the argument."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from unittest.mock import patch

from ansorpy.measure.build.built import Built
from ansorpy.measure.build.handlers import build_lowered
from ansorpy.schedule.lowering.program import Lowered, lower
from ansorpy.schedule.state import State
from ansorpy.target import Target
from benchmarks.cuda.correctness.checks import CHECKS as CORRECTNESS
from benchmarks.cuda.smoke.checks import CHECKS
from benchmarks.cuda.smoke.machine import Fault, SmokeGpu, blocked
from benchmarks.cuda.smoke.stage import Checked, check_one
from tests.codegen.cuda.simulated import GPU, SimulatedDevice
from tests.measure.gpu.simulated import simulated_built

__all__ = ["built", "checked", "simulated"]

FAULTS: Mapping[Fault, str] = {"crash": "illegal access", "hang": "hangs", "wrong": "wrong"}


def simulated() -> SmokeGpu:
    """The GPU of this process; the run worker has one of its own."""
    device = SimulatedDevice()

    def planted(fault: Fault) -> Built:
        return simulated_built(blocked(), fault=FAULTS[fault])

    return SmokeGpu(
        device, GPU, built, planted, worker="tests.measure.gpu.simulated",
        launcher="tests.benchmarks.cuda.simulated_launches",
    )  # fmt: skip


def built(state: State) -> Built:
    """*state* for the simulated GPU; what packs its constants is for this machine's CPU."""
    lowered = lower(state)
    found = simulated_built(state, seconds=0.02)
    if lowered.bind is None:
        return found
    bind = build_lowered(Lowered(lowered.bind, None), Target.host(), "bind")
    return replace(found, bind=bind.run, bind_params=bind.run_params)


def checked(name: str) -> Checked:
    """What the check *name* finds where the simulated GPU is the machine's."""
    gpu = simulated()
    with (
        patch.object(Target, "gpus", lambda self: (0,) if self.backend == "cuda" else ()),
        patch("ansorpy.runtime.gpu.runtime.device_for", lambda target: gpu.device),
    ):
        return check_one(name, lambda: gpu, {**CHECKS, **CORRECTNESS})


def main(name: str) -> None:
    print(checked(name).model_dump_json())


if __name__ == "__main__":
    main(sys.argv[1])
