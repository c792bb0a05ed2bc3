"""Start and completion of asynchronous instructions, with checks of their fences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from ansorpy.arrays import Ints
from ansorpy.ir.fragments import fragment_lanes
from ansorpy.ir.interpret.lanes import Lanes
from ansorpy.ir.interpret.memory import Memory
from ansorpy.ir.interpret.numerics import Value
from ansorpy.ir.interpret.products import NOT_COMMITTED, UnderWay
from ansorpy.ir.intrinsics import intrinsic, operand_dims, operand_tensors
from ansorpy.ir.loops import Buffer, Instruction, Scope
from ansorpy.ir.sizes import fixed, fixed_all
from ansorpy.ir.tensor import Tensor

__all__ = ["fence", "finish", "start"]


def start(
    memory: Memory, stmt: Instruction, lanes: Lanes, places: Sequence[Sequence[Value]],
    compute: Callable[[], None],
) -> None:  # fmt: skip
    """Start *stmt* for each of *lanes*, which each represent a team; *compute* executes it.

    *places* are the indices of its operands.

    Raises:
        LoweringError: It reads shared memory that no fence has made visible to it, or adds to
            registers written since the last fence.
    """
    assert memory.products is not None
    tensors = operand_tensors(intrinsic(stmt.name).pattern)
    parts = [
        (buffer, _elements(buffer, tensor, at, lanes))
        for (buffer, _), tensor, at in zip(stmt.operands, tensors, places, strict=True)
    ]
    (total, sums), *read = parts
    _require_fences(memory, parts)
    storage = memory.storage[total]
    storage.defined[np.intersect1d(sums, memory.products.adds_to(total))] = True
    compute()
    storage.defined[sums] = False
    assert storage.fenced is not None
    storage.fenced[sums] = True
    for n, thread in enumerate(lanes.spread(lanes.thread)):
        reads = tuple((buffer, at[n]) for buffer, at in read)
        memory.products.start(UnderWay(stmt, int(thread), NOT_COMMITTED, total, sums[n], reads))


def finish(memory: Memory, done: Iterable[UnderWay]) -> None:
    """Complete these instructions: their results are defined, and their tiles may be written."""
    assert memory.products is not None
    for product in done:
        memory.statement = product.statement
        defined = memory.storage[product.total].defined
        defined[np.setdiff1d(product.at, memory.products.adds_to(product.total))] = True
        for buffer, at in product.reads:
            memory.note_read(buffer, at, product.thread)


def fence(memory: Memory, scope: Scope, lanes: Lanes) -> None:
    """Make writes of the threads of *lanes* to *scope* visible to asynchronous instructions.

    For shared memory, the fence counts as the time of the writes, so a barrier must follow it.
    """
    assert memory.clock is not None
    threads = np.unique(lanes.spread(lanes.thread))
    for buffer, storage in memory.storage.items():
        if buffer.scope is not scope or storage.fenced is None:
            continue
        if buffer.fragment is not None:
            teams = np.unique(lanes.spread(lanes.team(fragment_lanes(buffer.fragment))))
            storage.fenced.reshape(-1, fixed(buffer.size))[teams] = True
        elif storage.log is not None:
            mine = storage.defined & ~storage.fenced & np.isin(storage.log.writer, threads)
            storage.fenced |= mine
            storage.log.written_at[mine] = memory.clock.now


def _elements(buffer: Buffer, tensor: Tensor, at: Sequence[Value], lanes: Lanes) -> Ints:
    """Positions of all elements of an operand, one row per lane."""
    extents = dict(zip(operand_dims(buffer, tensor), fixed_all(tensor.shape), strict=True))
    found = lanes.spread(lanes.env[buffer])[:, None]
    step = fixed(buffer.size)
    for d, (index, extent) in enumerate(zip(at, fixed_all(buffer.shape), strict=True)):
        step //= extent
        moved = lanes.spread(index)[:, None, None] + np.arange(extents.get(d, 1))
        found = (found[:, :, None] + moved * step).reshape(lanes.count, -1)
    return found


def _require_fences(memory: Memory, parts: Iterable[tuple[Buffer, Ints]]) -> None:
    for buffer, at in parts:
        storage = memory.storage[buffer]
        assert storage.fenced is not None, buffer.name
        wrong = storage.defined[at] & ~storage.fenced[at]
        if wrong.any():
            name = memory.name(buffer, int(at[wrong][0]))
            raise memory.error(f"no fence({buffer.scope.value}) follows the write to {name}")
