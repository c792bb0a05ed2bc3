"""Run compiled code: a loaded program's three functions and the contexts they run in."""

from __future__ import annotations

import ctypes
import math
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, NamedTuple, NoReturn, SupportsIndex

import numpy as np

from ansorpy.codegen.llvm.objects.memory import (
    address_of,
    aligned_empty,
    allocator,
    sized_allocator,
)
from ansorpy.errors import UsageError
from ansorpy.ir.alias import Alias
from ansorpy.ir.extents import dims_of
from ansorpy.ir.sizes import at, fixed_all
from ansorpy.ir.symbols import Dim
from ansorpy.runtime.cpu_features import missing_features
from ansorpy.runtime.ports import CTensor, Port, c_tensors
from ansorpy.runtime.sharing import Range, capacity_of, not_shared, reach_of, refuse_overlap
from ansorpy.runtime.status import status_error

if TYPE_CHECKING:
    from ansorpy.arrays import Array

__all__ = ["Code", "Executable", "Uncopied"]

_INIT = ctypes.CFUNCTYPE(ctypes.c_int)
_PLAN = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p
)
_RUN = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int
)


_MOST_NEEDS = 4096
"""Combinations of shapes and threads whose needs are remembered."""
_MOST_THREADS = (1 << 31) - 1
"""The largest C int."""

Shapes = tuple[Sequence[tuple[int, ...]], Sequence[tuple[int, ...]]]
"""Of inputs and outputs."""


@dataclass(frozen=True)
class Code:
    """Addresses of a loaded program's functions; ``owner`` keeps the code mapped.

    ``required`` are the CPU features it needs, ``counted`` the dimensions whose sizes a run counts.
    """

    name: str
    init: int
    plan: int
    run: int
    owner: object
    required: tuple[str, ...] = ()
    counted: tuple[Dim, ...] = ()


class _Context:
    """Memory for one run at a time (arena and workspaces) and the arguments of the C call."""

    def __init__(self, inputs: Sequence[Port], outputs: Sequence[Port]) -> None:
        self.size = 0
        self.shapes: Shapes | None = None
        self._tables = tables = c_tensors(inputs), c_tensors(outputs)
        # One object per tensor, made once: indexing a ctypes array makes a new object each time.
        self.inputs = [tables[0][k] for k in range(len(inputs))]
        self.outputs = [tables[1][k] for k in range(len(outputs))]
        # Pointers made once: ctypes converts an array or a plain number more slowly on each call.
        self.tables = tuple(ctypes.c_void_p(ctypes.addressof(table)) for table in tables)
        self.enlarge(0)

    def enlarge(self, size: int) -> None:
        """Let the memory have *size* bytes; raises :class:`MemoryError` if there is not that much.

        Until it has them, it has none for the next run, whatever interrupts this.
        """
        self.size = 0
        self._memory = None
        self._memory = aligned_empty((size,), np.uint8) if size else None
        place = None if self._memory is None else address_of(self._memory)
        self.arguments = (ctypes.c_void_p(place), *self.tables)
        self.size = size

    def touch(self) -> None:
        """Write to every page, so that the system has mapped and cleared them all."""
        if self._memory is not None:
            self._memory.fill(0)

    def state(self, shapes: Shapes) -> None:
        """Set the shapes of the tensors; those of outputs are what their memory has room for."""
        if shapes is not self.shapes:
            self.shapes = None
            _set_shapes(self.inputs, shapes[0])
            _set_shapes(self.outputs, shapes[1])
            self.shapes = shapes


class _Need(NamedTuple):
    """What runs with given threads, and shapes of the inputs, need.

    Args:
        bytes: Of the context.
        threads: Their number as a C int.
        shapes: Of inputs and outputs, if they depend on the call.
    """

    bytes: int
    threads: ctypes.c_int
    shapes: Shapes | None


class Executable:
    """A loaded program.  Any number of Python threads may call :meth:`run` at once.

    Each run takes a free context or makes one.  The number of contexts is the largest number of
    runs that were ever active at once, and each context is large enough for the largest run it has
    been used for.

    Raises:
        MissingDependency: The CPU lacks features the code was generated for.
        CodegenError: Packing the constants failed.
    """

    def __init__(
        self,
        code: Code,
        inputs: Sequence[Port],
        outputs: Sequence[Port],
        aliases: Sequence[Alias] = (),
    ) -> None:
        self._code = code
        self._inputs = tuple(inputs)
        self._outputs = tuple(outputs)
        self._aliases = {alias.output: alias for alias in aliases}
        ends = (*inputs, *outputs)
        self._is_sized = any(not isinstance(n, int) for port in ends for n in port.shape)
        told = dims_of(extent for port in inputs for extent in port.shape)
        self._counted = [
            number
            for number, port in enumerate(outputs)
            if not set(told).issuperset(dims_of(port.shape))
        ]
        """The outputs whose sizes a run counts."""
        self._allocators: list[Callable[..., Array]] = [
            sized_allocator(port.dtype) if self._is_sized else allocator(port.shape, port.dtype)
            for port in outputs
        ]
        self._plan: Callable[..., int] = _PLAN(code.plan)
        self._run: Callable[..., int] = _RUN(code.run)
        self._needs: dict[object, _Need] = {}
        self._free: list[_Context] = []
        self._address = _Addresses()
        self._fail_unless_ok(_INIT(code.init)())

    def run(
        self, inputs: Sequence[Array], outputs: Sequence[Array | None], threads: int
    ) -> list[Array]:
        """Compute the outputs from *inputs*, in the ports' order, and return them.

        Args:
            inputs: Arrays, already checked by the caller.
            outputs: Arrays to write to, also checked; ``None`` allocates a new one, unless the
                output shares the memory of an input.

        Raises:
            UsageError: An output shares memory with another tensor, or *threads* is not a whole
                number from 1 to 2147483647.
            CodegenError: The code returned an error.
        """
        try:
            context = self._free.pop()  # atomic, like append: no lock is needed
        except IndexError:
            context = _Context(self._inputs, self._outputs)
        try:
            need = None if self._is_sized else self._needs.get(threads)
            if need is None:
                need = self._needed(context, inputs, threads)
            if context.size < need.bytes:
                self._enlarge(context, need)
            results = self._point(context, need, inputs, outputs)
            if self._counted:
                context.shapes = None  # the run replaces those of outputs
            status = self._run(*context.arguments, need.threads)
            if self._counted and not status:
                self._cut(context, results)
        finally:
            self._free.append(context)
        if status:
            self._fail_unless_ok(status)
        return results

    def _cut(self, context: _Context, results: list[Array]) -> None:
        """Replace each output whose size the run counted by the part of it that is the result."""
        for number in self._counted:
            rank = len(self._outputs[number].shape)
            shape = tuple(context.outputs[number].shape[:rank])
            flat = results[number].reshape(-1)
            results[number] = flat[: math.prod(shape)].reshape(shape)

    def reserve(self, threads: int) -> None:
        """Create the context of a run with *threads* threads in advance, with all its pages mapped.

        None is created if its size depends on the shapes of a call.

        Raises:
            UsageError: As :meth:`run`.
        """
        if not self._is_sized:
            context = self._context((), threads)[0]
            context.touch()
            self._free.append(context)

    def prepare(
        self, inputs: Sequence[Array], outputs: Sequence[Array], threads: int
    ) -> Callable[[], None]:
        """Return a function that runs repeatedly on these arrays, in a context of its own.

        It must not be called from two threads at once.  It keeps the arrays alive.

        Raises:
            UsageError: As :meth:`run`.
        """
        context, need = self._context(inputs, threads)
        self._point(context, need, inputs, outputs)
        held = (self._code.owner, context, tuple(inputs), tuple(outputs))
        arguments = (*context.arguments, need.threads)
        run = _Prepared(self._run, arguments, self._fail_unless_ok, held).run
        if not self._counted and not any(alias.capacity for alias in self._aliases.values()):
            return run

        def with_capacities() -> None:
            if self._counted and need.shapes is not None:
                _set_shapes(context.outputs, need.shapes[1])
            self._state_capacities(context, outputs)
            run()

        return with_capacities

    def _context(self, inputs: Sequence[Array], threads: int) -> tuple[_Context, _Need]:
        """A new context for a run on *inputs*, and what this run needs."""
        context = _Context(self._inputs, self._outputs)
        need = self._needed(context, inputs, threads)
        self._enlarge(context, need)
        return context, need

    def _needed(self, context: _Context, inputs: Sequence[Array], threads: int) -> _Need:
        """What a run on *inputs* needs; the program is asked once for the same shapes."""
        if not self._is_sized:
            return self._needs.get(threads) or self._planned(context, threads, (), threads)
        shapes = [array.shape for array in inputs]
        key = (threads, *shapes)
        return self._needs.get(key) or self._planned(context, key, shapes, threads)

    def _planned(
        self, context: _Context, key: object, given: Sequence[tuple[int, ...]], threads: int
    ) -> _Need:
        """What a run on inputs of the *given* shapes needs, as the program itself says.

        It is asked with the tables of *context*, where it leaves the shapes of the outputs.
        """
        if not isinstance(threads, Integral) or not 1 <= threads <= _MOST_THREADS:
            raise UsageError(
                f"threads must be a whole number from 1 to {_MOST_THREADS}, got {threads!r}"
            )
        context.shapes, size = None, ctypes.c_size_t()
        if self._is_sized:
            _set_shapes(context.inputs, given)
        self._fail_unless_ok(self._plan(*context.tables, threads, ctypes.addressof(size)))
        if self._is_sized:
            made = zip(context.outputs, self._outputs, strict=True)
            outputs = [tuple(tensor.shape[: len(port.shape)]) for tensor, port in made]
            context.shapes = given, outputs
        if len(self._needs) >= _MOST_NEEDS:
            self._needs.clear()
        made_need = _Need(size.value, ctypes.c_int(threads), context.shapes)
        return self._needs.setdefault(key, made_need)

    def _enlarge(self, context: _Context, need: _Need) -> None:
        """Make *context* large enough for *need*.

        If it had memory before, it becomes at least twice as large, unless no run needs that much:
        calls of growing sizes seldom enlarge it, and pages that no call has used take no memory.
        """
        size = need.bytes
        if self._is_sized and context.size:
            dims = {dim: dim.high for dim in dims_of(n for p in self._inputs for n in p.shape)}
            shapes = [fixed_all(at(n, dims) for n in port.shape) for port in self._inputs]
            threads = need.threads.value
            key = ("largest", threads)
            largest = self._needs.get(key) or self._planned(context, key, shapes, threads)
            size = max(size, min(2 * context.size, largest.bytes))
        try:
            context.enlarge(size)
        except MemoryError:
            if size == need.bytes:
                raise
            context.enlarge(need.bytes)

    def _point(
        self,
        context: _Context,
        need: _Need,
        inputs: Sequence[Array],
        outputs: Sequence[Array | None],
    ) -> list[Array]:
        """Set the data pointers and the shapes that depend on the call; returns the outputs.

        Output arrays passed by the caller must not overlap an input, except the one whose memory
        they share, or each other; arrays allocated here never do.
        """
        known, shared = self._address.of, self._aliases
        for tensor, array in zip(context.inputs, inputs, strict=True):
            tensor.data = known(array)
        stated: Sequence[tuple[int, ...]] = ()
        if need.shapes is not None:
            context.state(need.shapes)
            stated = need.shapes[1]
        results = []
        written: list[Range] = []
        for n, (tensor, given, port) in enumerate(
            zip(context.outputs, outputs, self._outputs, strict=True)
        ):
            if given is None:
                made = self._allocators[n](*stated[n : n + 1])
                tensor.data = address_of(made)
                results.append(made)
                continue
            start, reach = known(given), given.nbytes
            tensor.data = start
            if n in shared:
                number, reach = shared[n].input, reach_of(given)
                if start != known(inputs[number]):
                    raise not_shared(port.name, self._inputs[number].name)
            written.append((start, start + reach, n))
            results.append(given)
        if written:
            refuse_overlap(self._outputs, [*self._only_read(inputs), *written])
        if shared:
            self._state_capacities(context, results)
        return results

    def _only_read(self, inputs: Sequence[Array]) -> Iterator[Range]:
        """Where *inputs* lie, except those that outputs continue, which reach at least as far."""
        continued = {alias.input for alias in self._aliases.values()}
        for number, array in enumerate(inputs):
            if number not in continued:
                start = self._address.of(array)
                yield start, start + array.nbytes, -1

    def _state_capacities(self, context: _Context, outputs: Sequence[Array | None]) -> None:
        """Set the shapes of outputs in the memory of inputs to what this memory has room for.

        A run replaces them by the shapes of its results.
        """
        for number, alias in self._aliases.items():
            array = outputs[number]
            if alias.capacity is not None and array is not None:
                context.outputs[number].shape[alias.axis] = capacity_of(alias, array)

    def _fail_unless_ok(self, status: int) -> None:
        if status:
            missing = missing_features(self._code.required)
            raise status_error(self._code.name, status, missing, self._code.counted)


class _Prepared:
    """A run with its arguments in place; ``held`` keeps the objects alive that the run uses."""

    __slots__ = ("_arguments", "_fail_unless_ok", "_held", "_run")

    def __init__(
        self,
        run: Callable[..., int],
        arguments: tuple[object, ...],
        fail_unless_ok: Callable[[int], None],
        held: object,
    ) -> None:
        self._run = run
        self._arguments = arguments
        self._fail_unless_ok = fail_unless_ok
        self._held = held

    def run(self) -> None:
        status = self._run(*self._arguments)
        if status:
            self._fail_unless_ok(status)


def _set_shapes(tensors: Iterable[CTensor], shapes: Sequence[tuple[int, ...]]) -> None:
    for tensor, shape in zip(tensors, shapes, strict=False):
        tensor.shape[: len(shape)] = shape


class _Addresses:
    """Cache of array addresses for as long as the arrays live.

    Asking numpy for an address would take most of the time of a call.

    numpy does not move the memory of a weakly referenced array (``resize`` refuses).
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Array], int]] = {}

    def of(self, array: Array) -> int:
        entry = self._known.get(id(array))
        if entry is not None and entry[0]() is array:
            return entry[1]
        key = id(array)
        address = address_of(array)
        self._known[key] = (weakref.ref(array, lambda ref: self._forget(key, ref)), address)
        return address

    def _forget(self, key: int, ref: weakref.ref[Array]) -> None:
        """Drop the entry unless a new array with the same id has replaced it."""
        entry = self._known.get(key)
        if entry is not None and entry[0] is ref:
            self._known.pop(key, None)


class Uncopied:
    """A base of objects that hold machine code of this process, which no copy could use."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse ``copy`` and ``pickle``."""
        raise UsageError(
            f"{self!r} holds machine code of this process, so it is neither copied nor pickled",
            hint='write a library with export("net.so"), and ap.load("net.so") where it is needed',
        )
