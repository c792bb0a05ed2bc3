"""One check of the smoke stage on a simulated GPU: its name is the argument."""

from __future__ import annotations

import os
import sys
from unittest.mock import patch

from ansorpy.measure.build.built import Built
from ansorpy.schedule.state import State
from ansorpy.target import Target
from benchmarks.cuda.smoke.machine import SmokeGpu, blocked
from benchmarks.cuda.smoke.stage import check_one
from tests.codegen.cuda.simulated import GPU, SimulatedDevice
from tests.measure.gpu.simulated import simulated_built

__all__ = ["simulated"]


def simulated() -> SmokeGpu:
    """The GPU of this process; the run worker has one of its own."""
    device = SimulatedDevice()

    def build(state: State) -> Built:
        return simulated_built(state, seconds=1e-4)

    return SmokeGpu(
        device, GPU, build, lambda: simulated_built(blocked(), fault="illegal access"),
        worker="tests.measure.gpu.simulated",
    )  # fmt: skip


def main(name: str) -> None:
    if name == os.environ.get("ANSORPY_TEST_DIES_IN"):
        os.abort()
    gpu = simulated()
    with (
        patch.object(Target, "gpus", lambda self: (0,) if self.backend == "cuda" else ()),
        patch("ansorpy.runtime.gpu.runtime.device_for", lambda target: gpu.device),
    ):
        print(check_one(name, lambda: gpu).model_dump_json())


if __name__ == "__main__":
    main(sys.argv[1])
