"""The code of one task, as a plan calls it."""

from __future__ import annotations

from dataclasses import dataclass

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.loops import Program
from ansorpy.ir.symbols import Dim
from ansorpy.ir.text.printer import text
from ansorpy.measure.build.built import Built
from ansorpy.runtime.renaming import with_names_of

__all__ = ["CompiledTask"]


@dataclass(frozen=True)
class CompiledTask:
    """The code of one task and the names of its constants.

    Args:
        placeholders: Names of the definition's arguments, in order.  Calls of the same workload may
            use other names; they are matched by position.
        program: The loop nest, for display.
        median_s: Median seconds of one run, or ``None`` if it was never timed.
        schedule: What was compiled, with a schedule for each part of the sizes
            (:mod:`ansorpy.runtime.schedules`), if known.
        dims: Dimensions of the definition, in its order.  Calls of the same workload may have
            others; they are matched by position.
        sizes: Those of *dims* whose sizes the code takes, in the order in which it takes them.
    """

    built: Built
    placeholders: tuple[str, ...]
    program: str = ""
    median_s: float | None = None
    schedule: str = ""
    dims: tuple[Dim, ...] = ()
    sizes: tuple[Dim, ...] = ()

    @staticmethod
    def of(
        dag: ComputeDAG,
        built: Built,
        *,
        compiled_from: ComputeDAG | None = None,
        program: Program | None = None,
        median_s: float | None = None,
        schedule: str = "",
    ) -> CompiledTask:
        """Make the task of *built*, renaming its parameters as in *dag*.

        Args:
            compiled_from: The definition that was compiled, if it is not *dag* but one that differs
                in names only: a database keeps the first definition it saw.
            program: The loop nest that was compiled.
            schedule: What it was lowered from (:mod:`ansorpy.runtime.schedules`).
        """
        origin = compiled_from or dag
        dims = dict(zip(origin.dims, dag.dims, strict=True))
        return CompiledTask(
            with_names_of(built, dag, origin, dims), tuple(op.name for op in dag.args),
            program="" if program is None else text(program),
            median_s=median_s, schedule=schedule, dims=dag.dims,
            sizes=tuple(dims.get(dim, dim) for dim in built.dims),
        )  # fmt: skip
