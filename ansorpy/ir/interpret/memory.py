"""The buffers of a running loop program, with checks of bounds, undefined contents and races."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ansorpy.arrays import Array, Ints, Masks
from ansorpy.errors import LoweringError
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import ReduceKind
from ansorpy.ir.fragments import Fragment, fragment_lanes, in_lane
from ansorpy.ir.interpret.copies import Arrived, Copies
from ansorpy.ir.interpret.evaluate import Evaluator, Frame, Mask, flat_index
from ansorpy.ir.interpret.lanes import Lanes
from ansorpy.ir.interpret.numerics import COMBINE, Value
from ansorpy.ir.interpret.products import Products
from ansorpy.ir.interpret.races import AccessLog, Clock, Race
from ansorpy.ir.loops import Buffer, Scope, Stmt
from ansorpy.ir.sizes import fixed, fixed_all
from ansorpy.ir.tensor import Tensor
from ansorpy.ir.text.printer import text

__all__ = ["LaneFrame", "Memory", "Storage"]


@dataclass
class Storage:
    """All instances of one buffer, one after another, and a mask of the elements written.

    ``fenced``, for memory of a kernel itself, marks the elements not written since the last fence.
    """

    data: Array
    defined: Masks
    log: AccessLog | None = None
    fenced: Masks | None = None

    @staticmethod
    def undefined(buffer: Buffer, instances: int) -> Storage:
        """Fresh storage with undefined contents."""
        size = buffer.size * instances
        data, defined = np.zeros(size, dtype=buffer.dtype.numpy), np.zeros(size, dtype=np.bool_)
        own = buffer.scope in (Scope.SHARED, Scope.WARP)
        return Storage(data, defined, fenced=np.zeros(size, dtype=np.bool_) if own else None)


class LaneFrame(Frame):
    """The values of variables in each lane."""

    def __init__(self, lanes: Lanes):
        super().__init__(lanes.env)  # type: ignore[arg-type]
        self.lanes = lanes


class Memory(Evaluator):
    """Reads and writes elements for many lanes at once."""

    def __init__(self) -> None:
        super().__init__()
        self.storage: dict[Buffer, Storage] = {}
        self.clock: Clock | None = None
        self.copies: Copies | None = None
        self.products: Products | None = None
        self.agreement = True
        self.whole_warps = False
        """True while each lane represents its team and may access registers of the other lanes."""
        self.statement: Stmt | None = None
        self._numbers: dict[Stmt, int] = {}
        self._statements: list[Stmt] = []

    def begin(self, clock: Clock, *, agreement: bool) -> None:
        """Start a parallel region, in which accesses are checked for races."""
        self.clock, self.agreement = clock, agreement

    def end(self) -> None:
        """End the parallel region; all its threads have joined."""
        self.clock = self.copies = self.products = None
        for storage in self.storage.values():
            storage.log = None

    # Addresses

    def load(
        self, source: Tensor | Buffer, indices: tuple[Value, ...], frame: Frame, mask: Mask
    ) -> Value:
        assert isinstance(source, Buffer) and isinstance(frame, LaneFrame)
        at = self.address(source, indices, frame.lanes, mask)
        return self.read(source, at, frame.lanes, mask)

    def address(
        self, buffer: Buffer, indices: tuple[Value, ...], lanes: Lanes, mask: Mask = None
    ) -> Value:
        """Position in the storage; any valid position where *mask* is False."""

        def refused(where: str) -> LoweringError:
            return self.error(f"{buffer.name} is accessed {where}")

        flat = flat_index(buffer.shape, indices, mask, refused)
        if buffer not in lanes.env:
            raise self.error(f"{buffer.name} is not allocated here")
        if buffer.fragment is not None and not self.whole_warps:
            self._check_holder(buffer, buffer.fragment, indices, lanes, mask)
        return flat + lanes.env[buffer]

    def _check_holder(
        self, buffer: Buffer, fragment: Fragment, indices: Sequence[Value], lanes: Lanes,
        mask: Mask,
    ) -> None:  # fmt: skip
        """Check that each lane accesses only elements in its own registers."""
        holder = in_lane(fragment, indices)
        wrong = np.asarray(holder != lanes.in_team(fragment_lanes(fragment)))
        wrong = wrong if mask is None else wrong & mask
        if wrong.any():
            first = np.broadcast_to(holder, wrong.shape)[wrong][0]
            raise self.error(f"a lane accesses {buffer.name} in the registers of lane {first}")

    # Accesses

    def read(self, buffer: Buffer, at: Value, lanes: Lanes, mask: Mask = None) -> Value:
        """The elements of *buffer* at storage positions *at*."""
        storage = self.storage[buffer]
        if not len(storage.data):  # it has no element, so *mask* holds nowhere
            return np.zeros(np.shape(at), storage.data.dtype)
        defined = storage.defined[at]
        if not np.all(defined if mask is None else defined | ~mask):
            missing = ~defined if mask is None else ~defined & mask
            element = np.broadcast_to(at, np.shape(missing))[missing].flat[0]
            raise self._undefined(buffer, int(element))
        if self._is_watched(buffer):
            self._watch_read(buffer, storage, at, lanes, mask)
        return storage.data[at]

    def write(
        self, buffer: Buffer, at: Value, value: Value, reduce: ReduceKind | None, lanes: Lanes
    ) -> None:
        """Write *value*, or combine it with the old value if *reduce* is given."""
        storage = self.storage[buffer]
        if type(value) is int:
            value = DType.INT64.wrapped(value)  # Python's numbers have no limits
        # A loop of one iteration mixes arrays of one element with plain numbers.
        is_array = lanes.count > 1 or np.ndim(at) > 0 or np.ndim(value) > 0
        if is_array:
            shape = np.broadcast_shapes((lanes.count,), np.shape(at), np.shape(value))
            at, value = np.broadcast_to(at, shape), np.broadcast_to(value, shape)
        if reduce is not None and not np.all(storage.defined[at]):
            element = np.asarray(at)[~storage.defined[at]].flat[0]
            raise self._undefined(buffer, int(element))
        if not self.whole_warps:
            self._leave_alone(buffer, at)
        if storage.fenced is not None:
            storage.fenced[at] = False
        watched = self._is_watched(buffer)
        before = storage.data[at] if watched else None
        if reduce is None:
            storage.data[at] = value
        elif is_array:
            COMBINE[reduce].at(storage.data, at, np.asarray(value, dtype=storage.data.dtype))
        else:
            storage.data[at] = COMBINE[reduce](storage.data[at], value)
        storage.defined[at] = True
        if watched:
            self._watch_write(buffer, storage, at, (value, before), lanes, reduce is not None)

    def _leave_alone(self, buffer: Buffer, at: Value) -> None:
        """Check that no element is written that an instruction in flight still needs."""
        if self.products is None or not self.products.started:
            return
        for needed, what in (
            (self.products.reads(buffer), "may still read it"),
            (self.products.adds_to(buffer), "adds to it"),
        ):
            wrong = np.isin(at, needed)
            if wrong.any():
                name = self.name(buffer, int(np.asarray(at)[wrong].flat[0]))
                raise self.error(f"{name} is written while an instruction {what}")

    def start_copy(
        self, buffer: Buffer, at: Value, value: Value, statement: Stmt, lanes: Lanes
    ) -> None:
        """Write *value*, which counts as undefined until :meth:`arrive`."""
        if self.copies is None:
            raise self.error("a copy outside of a kernel launch")
        self.write(buffer, at, value, None, lanes)
        where = np.array(lanes.spread(at))
        self.storage[buffer].defined[where] = False
        self.copies.start(buffer, statement, where, np.array(lanes.spread(lanes.thread)))

    def arrive(self, copies: Sequence[Arrived]) -> None:
        """Make the results of these copies defined, as a write of each thread at this moment."""
        for copy in copies:
            self.statement = copy.statement
            storage = self.storage[copy.buffer]
            storage.defined[copy.at] = True
            if self.copies is not None and copy.statement in self.copies.boxes:
                assert storage.fenced is not None
                storage.fenced[copy.at] = True
            disputed = np.zeros(copy.at.shape, dtype=np.bool_)
            log = self._log(storage)
            found = log.write(copy.at, copy.thread, self._number(), disputed, disputed)
            if found is not None:
                raise self._race(copy.buffer, *found)

    def note_read(self, buffer: Buffer, at: Ints, thread: int) -> None:
        """Record that *thread* reads elements *at* of shared memory now."""
        found = self._log(self.storage[buffer]).read(at, np.full(at.shape, thread), self._number())
        if found is not None:
            raise self._race(buffer, *found)

    def _is_watched(self, buffer: Buffer) -> bool:
        return self.clock is not None and buffer.scope not in (Scope.LOCAL, Scope.WARP)

    def _log(self, storage: Storage) -> AccessLog:
        if storage.log is None:
            assert self.clock is not None
            size = len(storage.data)
            storage.log = AccessLog(size, self.clock, agreement=self.agreement)
        return storage.log

    def _watch_read(
        self, buffer: Buffer, storage: Storage, at: Value, lanes: Lanes, mask: Mask
    ) -> None:
        shape = np.broadcast_shapes((lanes.count,), np.shape(at))
        where, thread = np.broadcast_to(at, shape), np.broadcast_to(lanes.thread, shape)
        if mask is not None:
            wanted = np.broadcast_to(mask, shape)
            where, thread = where[wanted], thread[wanted]
        found = self._log(storage).read(where, thread, self._number())
        if found is not None:
            raise self._race(buffer, *found)

    def _watch_write(
        self,
        buffer: Buffer,
        storage: Storage,
        at: Value,
        values: tuple[Value, Value],
        lanes: Lanes,
        combined: bool,
    ) -> None:
        where = np.atleast_1d(at).reshape(-1)
        thread = np.asarray(lanes.spread(lanes.thread))
        if np.ndim(at) > 1:
            thread = np.repeat(thread, where.size // lanes.count)
        value, before = (np.atleast_1d(v).astype(storage.data.dtype).reshape(-1) for v in values)
        unchanged, agreed = _equal(before, value), _equal(storage.data[where], value)
        if combined:
            unchanged = agreed = np.zeros(where.shape, dtype=np.bool_)
        found = self._log(storage).write(where, thread, self._number(), unchanged, agreed)
        if found is not None:
            raise self._race(buffer, *found)

    # Messages

    def _number(self) -> int:
        assert self.statement is not None
        number = self._numbers.setdefault(self.statement, len(self._statements))
        if number == len(self._statements):
            self._statements.append(self.statement)
        return number

    def name(self, buffer: Buffer, position: int) -> str:
        """The name of an element in messages."""
        index = (
            np.unravel_index(position % fixed(buffer.size), fixed_all(buffer.shape))
            if buffer.shape
            else ()
        )
        return f"{buffer.name}[{', '.join(str(int(i)) for i in index)}]"

    def _undefined(self, buffer: Buffer, position: int) -> LoweringError:
        name = self.name(buffer, position)
        under_way = () if self.copies is None else self.copies.started
        if any(c.buffer is buffer and (c.at == position).any() for c in under_way):
            return self.error(f"{name} is read before waiting for the copy to it")
        if self.products is not None and position in self.products.adds_to(buffer):
            return self.error(f"{name} is read before the instruction that adds to it is done")
        return self.error(f"{name} is read before it is written")

    def _race(self, buffer: Buffer, position: int, other: int) -> Race:
        assert self.statement is not None
        return Race(
            f"two threads access {self.name(buffer, position)} with no barrier in between: "
            f'"{_line(self._statements[other])}" and "{_line(self.statement)}"',
            hint="put a barrier between the two statements, or let one thread do both",
        )

    def error(self, message: str) -> LoweringError:
        """An error about the current statement."""
        where = "" if self.statement is None else f' in "{_line(self.statement)}"'
        return LoweringError(message + where)


def _line(s: Stmt) -> str:
    return text(s).split("\n", 1)[0]


def _equal(a: Array, b: Array) -> Masks:
    """True where the bits agree, or both are NaN."""
    return np.asarray((a == b) | ((a != a) & (b != b)))
