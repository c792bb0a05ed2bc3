"""Launch stored programs on a simulated GPU, which sees every access beyond an argument."""

from __future__ import annotations

import sys

from benchmarks.cuda.correctness.launches import main
from tests.codegen.cuda.simulated import SimulatedDevice

if __name__ == "__main__":
    main(sys.argv[1], SimulatedDevice)
