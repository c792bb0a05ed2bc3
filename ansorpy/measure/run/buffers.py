"""A candidate's arrays: guarded for the check, and laid out as in deployment for timing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ansorpy.arrays import Array
from ansorpy.codegen.llvm.objects.memory import aligned_empty
from ansorpy.errors import CodegenError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.loops import Role
from ansorpy.ir.strides import ALIGNMENT_BYTES, dense_strides, padded
from ansorpy.measure.build.built import ParamSpec
from ansorpy.measure.check.guard import GuardedArray
from ansorpy.measure.run.inputs import drawn_inputs

__all__ = ["FLOATS", "CheckBuffers", "ConstantCopies", "TaskArrays", "turns"]

_MAX_COPIES = 1024
"""Maximum number of copies: constants small enough to need more stay in a cache anyway."""


class TaskArrays:
    """Inputs and outputs of one task, made once and used by all its candidates.

    ``guarded`` holds every placeholder, sealed against writing, and ``checked`` what the checking
    run computes; ``inputs`` and ``outputs``, which are made when they are first needed, are used
    for timing, with warm caches.
    """

    def __init__(self, dag: ComputeDAG, seed: int) -> None:
        self.dag = dag
        self.guarded: dict[str, GuardedArray] = {}
        for op, values in drawn_inputs(dag, seed):
            guarded = GuardedArray(op.shape, op.dtype.numpy, strides=dag.strides.get(op.name))
            guarded.array[...] = values
            guarded.seal()
            self.guarded[op.name] = guarded
        self.checked = [
            GuardedArray(op.shape, op.dtype.numpy, strides=dag.strides.get(op.name))
            for op in dag.outputs
        ]
        self._aligned: dict[str, GuardedArray] = {}

    def placeholder(self, name: str) -> GuardedArray:
        """The placeholder *name*; raises :class:`CodegenError` if there is none."""
        if name not in self.guarded:
            raise CodegenError(f"the kernel takes {name}, which the definition does not have")
        return self.guarded[name]

    def aligned(self, name: str) -> GuardedArray:
        """A sealed copy of :meth:`placeholder` on a cache line, made when it is first needed.

        Unpacked constants are guaranteed to be there; inputs only have the alignment of elements.
        """
        if name not in self._aligned:
            source = self.placeholder(name).array
            copy = GuardedArray(source.shape, source.dtype, align=ALIGNMENT_BYTES)
            copy.array[...] = source
            copy.seal()
            self._aligned[name] = copy
        return self._aligned[name]

    @cached_property
    def inputs(self) -> dict[str, Array]:
        found: dict[str, Array] = {}
        for op in self.dag.args:
            if not op.constant:
                values = self.guarded[op.name].array
                apart = self.dag.strides.get(op.name)
                found[op.name] = aligned_empty(values.shape, values.dtype, apart)
                found[op.name][...] = values
        return found

    @cached_property
    def outputs(self) -> list[Array]:
        return [
            aligned_empty(op.shape, op.dtype.numpy, self.dag.strides.get(op.name))
            for op in self.dag.outputs
        ]

    @property
    def nbytes(self) -> int:
        """Total bytes of inputs and outputs, each counted once."""
        return sum(a.nbytes for a in (*self.inputs.values(), *self.outputs))

    def values(self) -> dict[str, Array]:
        """All placeholders by name."""
        return {name: guarded.array for name, guarded in self.guarded.items()}


class _FloatPool:
    """Memory filled with floats, and kept for all tasks whose floats are of the same types.

    All candidates share it: a kernel's time does not depend on the values of its floats, and
    copying them would take longer than timing the kernel.  Getting new pages from the system takes
    ten times as long as filling them.
    """

    def __init__(self) -> None:
        self._memory = aligned_empty((0,), np.uint8)
        self._filled = 0
        self._types: set[np.dtype[np.generic]] = set()

    def filled(self, size: int, like: Sequence[Array]) -> npt.NDArray[np.uint8]:
        """*size* bytes, which repeat those of *like* or of earlier arrays of the same types."""
        if self._memory.size < size:
            self._memory, self._filled = aligned_empty((size,), np.uint8), 0
        types = {array.dtype for array in like}
        if not types <= self._types or self._filled < size:
            self._types, self._filled = types, size
            values = np.concatenate([_bytes_of(array) for array in like])
            for start in range(0, size, values.size):
                place = self._memory[start : min(start + values.size, size)]
                place[:] = values[: place.size]
        return self._memory[:size]


FLOATS = _FloatPool()


class CheckBuffers:
    """Arguments of the checking run: every buffer ends at a guard page.

    Args:
        packed: Specs of the constants that ``bind`` packs, which are not placeholders.
    """

    def __init__(self, task: TaskArrays, packed: Sequence[ParamSpec], workspace_bytes: int) -> None:
        self.task = task
        self.packed = {
            spec.name: GuardedArray(spec.shape, spec.dtype.numpy, align=ALIGNMENT_BYTES)
            for spec in packed
        }
        self.workspace = GuardedArray((max(1, workspace_bytes),), np.uint8, align=ALIGNMENT_BYTES)

    def poison(self) -> None:
        """Fill what the run writes, so that what it leaves is seen."""
        for guarded in (*self.packed.values(), *self.task.checked, self.workspace):
            guarded.poison()

    def arguments(self, params: Sequence[ParamSpec]) -> list[GuardedArray]:
        """One array per parameter of ``run`` or ``bind``, in calling order."""
        outputs = iter(self.task.checked)
        found = []
        for spec in params:
            if spec.role is Role.OUTPUT and spec.name not in self.packed:
                found.append(next(outputs))
            elif spec.name in self.packed:
                found.append(self.packed[spec.name])
            elif spec.role is Role.CONSTANT:
                found.append(self.task.aligned(spec.name))
            else:
                found.append(self.task.placeholder(spec.name))
        for spec, guarded in zip(params, found, strict=True):
            if not _fits(spec, guarded.array):
                raise CodegenError(f"parameter {spec.name} does not fit the task: {spec}")
        return found

    def constants(self, params: Sequence[ParamSpec]) -> dict[str, Array]:
        """The constants that ``run`` takes, by name; valid after ``bind`` has run."""
        names = [spec.name for spec in params if spec.role is Role.CONSTANT]
        guarded = [self.packed.get(n) or self.task.placeholder(n) for n in names]
        return {name: array.array for name, array in zip(names, guarded, strict=True)}

    def is_intact(self) -> bool:
        """Return False if anything was written outside a buffer."""
        watched = (*self.packed.values(), *self.task.checked, self.workspace)
        return all(guarded.is_intact() for guarded in watched)


class ConstantCopies:
    """Copies of a candidate's constants used in turn, to reproduce the cache misses in a network.

    ``tables`` is ``[copies, parameters]``: the addresses passed to each call.  Between two uses of
    a copy the others are read: at least *reuse_distance_bytes*, and less than one copy more.  The
    caches then hold as much of a copy as they would hold of the constants in the network.
    """

    def __init__(
        self,
        task: TaskArrays,
        params: Sequence[ParamSpec],
        constants: dict[str, Array],
        reuse_distance_bytes: int,
    ) -> None:
        size = sum(padded(values.nbytes) for values in constants.values())
        copies = turns(reuse_distance_bytes, size)
        floats = {n: v for n, v in constants.items() if v.dtype.kind == "f"}
        others = {n: v for n, v in constants.items() if n not in floats}
        starts, pitch = _layout(floats)
        # Keep a reference: a later candidate that needs more memory replaces it in the pool.
        self._floats = FLOATS.filled(copies * pitch, [*floats.values()])
        columns = _addresses(self._floats, starts, pitch, copies)
        starts, pitch = _layout(others)
        self._others = aligned_empty((copies, pitch), np.uint8)
        columns |= _addresses(self._others, starts, pitch, copies)
        for name, start in starts.items():
            # This includes index tensors, whose values determine what is read.
            flat = _bytes_of(others[name])
            self._others[:, start : start + flat.size] = flat
        self.tables = np.zeros((copies, len(params)), dtype=np.uint64)
        outputs = iter(task.outputs)
        for column, spec in enumerate(params):
            if spec.role is Role.CONSTANT:
                self.tables[:, column] = columns[spec.name]
            else:
                from_task = task.inputs.get(spec.name) if spec.role is Role.INPUT else next(outputs)
                assert from_task is not None
                self.tables[:, column] = from_task.ctypes.data

    def append(self, address: int) -> None:
        """Pass *address* to each call after its parameters."""
        column = np.full((len(self.tables), 1), address, dtype=np.uint64)
        self.tables = np.hstack([self.tables, column])


def turns(reuse_distance_bytes: int, size: int) -> int:
    """Number of copies of *size* bytes; all but one add up to at least *reuse_distance_bytes*."""
    return min(_MAX_COPIES, 1 - (-reuse_distance_bytes // size)) if size else 1


def _layout(arrays: dict[str, Array]) -> tuple[dict[str, int], int]:
    """Return each array's offset within one copy of all arrays, and the size of a copy in bytes."""
    starts, size = {}, 0
    for name, values in arrays.items():
        starts[name] = size
        size += padded(values.nbytes)
    return starts, size


def _addresses(
    memory: npt.NDArray[np.uint8], starts: Mapping[str, int], pitch: int, copies: int
) -> dict[str, npt.NDArray[np.uint64]]:
    """The address of each array in each of the *copies*, which lie *pitch* bytes apart."""
    copy = np.uint64(pitch) * np.arange(copies, dtype=np.uint64)
    base = memory.ctypes.data
    return {name: np.uint64(base + start) + copy for name, start in starts.items()}


def _fits(spec: ParamSpec, array: Array) -> bool:
    """Whether *array* has the elements where *spec* says; steps over one element do not matter."""
    steps = dense_strides(spec.shape) if spec.strides is None else spec.strides
    apart = [step * array.itemsize for step, n in zip(steps, spec.shape, strict=True) if n != 1]
    own = [step for step, n in zip(array.strides, array.shape, strict=True) if n != 1]
    return (array.shape, array.dtype, own) == (spec.shape, spec.dtype.numpy, apart)


def _bytes_of(array: Array) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
