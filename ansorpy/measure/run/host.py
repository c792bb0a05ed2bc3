"""Run candidates on the CPU cores of this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import cache

from ansorpy.arrays import Array
from ansorpy.codegen.llvm.objects.jit import load
from ansorpy.ir.dag import ComputeDAG
from ansorpy.measure.build.built import Built
from ansorpy.measure.probe.disturbance import CoreProbe
from ansorpy.measure.run.buffers import TaskArrays
from ansorpy.measure.run.kernel import LoadedKernel, Loader

__all__ = ["HostTask"]


class HostTask:
    """A task whose candidates run in this process; a crash in one ends it.

    Args:
        load: Loads the candidates' code; the default loads object code for this machine.
    """

    def __init__(self, dag: ComputeDAG, seed: int, threads: int, load: Loader = load) -> None:
        self.arrays = TaskArrays(dag, seed)
        self.threads = threads
        self._load = load

    @property
    def dag(self) -> ComputeDAG:
        return self.arrays.dag

    def values(self) -> Mapping[str, Array]:
        return self.arrays.values()

    def results(self) -> Sequence[Array]:
        return [guarded.array for guarded in self.arrays.checked]

    def accepted_error(
        self, number: int, want: Array, allowed: float, *, by_block: bool, least: float
    ) -> float | None:
        return None  # the results are here already

    def recover(self) -> bool:
        return False  # the candidate ran in this process, and may have damaged anything in it

    def is_disturbed(self) -> bool:
        return _core_probe(self.threads).is_disturbed()

    def load(self, built: Built) -> closing[LoadedKernel]:
        return closing(LoadedKernel(built, self.arrays, self.threads, self._load))


@cache
def _core_probe(threads: int) -> CoreProbe:
    """One instance for all tasks, because its history describes the machine."""
    return CoreProbe(threads)
