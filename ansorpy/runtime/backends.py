"""Run and export compiled programs: one runtime for each backend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from ansorpy.codegen.object_code import ObjectCode
from ansorpy.errors import AnsorpyError
from ansorpy.registry import Registry
from ansorpy.runtime.execution_plan import ExecutionPlan
from ansorpy.runtime.footprint import Footprint
from ansorpy.runtime.library.forms import Pack
from ansorpy.runtime.library.metadata import Metadata
from ansorpy.runtime.model import Operands, Runs
from ansorpy.target import Target

if TYPE_CHECKING:
    from ansorpy.codegen.llvm.threads.traced import Recorder

__all__ = ["RUNTIMES", "Runtime", "TimedCalls", "TracedCalls", "runtime_of"]


@dataclass(frozen=True)
class TimedCalls:
    """``spent_ns`` holds the time that the last run spent in each call."""

    executable: Runs
    spent_ns: NDArray[np.int64]


@dataclass(frozen=True)
class TracedCalls:
    """``recorder`` keeps what each thread does in runs of ``executable``."""

    executable: Runs
    recorder: Recorder


class Runtime(Protocol):
    """Runs and exports the plans of one backend."""

    @property
    def operands(self) -> Operands:
        """The arrays that callers may pass."""

    def load(self, plan: ExecutionPlan, pool: NDArray[np.uint8], name: str) -> Runs:
        """Load *plan*, whose target this machine can run; *pool* holds its packed constants."""

    def timed(self, plan: ExecutionPlan, pool: NDArray[np.uint8]) -> TimedCalls:
        """Load *plan* with timestamps after each call."""

    def traced(self, plan: ExecutionPlan, pool: NDArray[np.uint8]) -> TracedCalls:
        """Load *plan* so that runs record what each thread does.

        Raises:
            UsageError: What runs elsewhere, on a GPU, cannot be recorded.
        """

    def footprint(self, plan: ExecutionPlan) -> Footprint:
        """The memory that a run of the loaded *plan* needs, at its largest sizes."""

    def kernels(self, code: ObjectCode, sizes: Sequence[int]) -> int:
        """GPU kernels that a call of *code* launches; 0 on CPUs, which call it directly.

        *sizes* are those of its dimensions.
        """

    def refusal(self, target: Target, name: str) -> AnsorpyError:
        """The error to raise when program *name* is run where code for *target* cannot run."""

    def require_export(self, path: Path, target: Target) -> None:
        """Check that programs for *target* can be exported to *path*.

        Raises:
            MissingDependency: There is no linker; the message says what to install.
            UsageError: No file of that kind can be made for *target*.
        """

    @property
    def packs_at_init(self) -> bool:
        """Whether a library's ``init`` can pack constants."""

    def export(self, plan: ExecutionPlan, path: Path, pack: Pack | None) -> Metadata:
        """Write *plan* to *path*; returns the program's metadata.

        Args:
            pack: When the constants are packed.  Without it: when ``init`` runs, where that makes
                the library smaller or only the target can pack them.
        """


RUNTIMES: Registry[Runtime] = Registry(
    "runtime",
    {
        "llvm": "ansorpy.runtime.native:NativeRuntime",
        "cuda": "ansorpy.runtime.gpu.runtime:GpuRuntime",
        "c": "ansorpy.runtime.c.runtime:CRuntime",
    },
)
"""The runtime of each backend."""


def runtime_of(target: Target) -> Runtime:
    """The runtime of *target*'s backend."""
    return RUNTIMES.one(target.backend)
