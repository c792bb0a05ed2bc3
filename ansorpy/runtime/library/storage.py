"""Where a library has its constants: in the file, or in memory that init fills."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ansorpy.arrays import Array
from ansorpy.ir.strides import padded
from ansorpy.runtime.constants import growing, make_pool, results, settled
from ansorpy.runtime.execution_plan import ExecutionPlan
from ansorpy.runtime.library.forms import Pack

__all__ = ["Contents", "Places", "stored"]


def stored(plan: ExecutionPlan, pack: Pack, name: str, versions: int = 1) -> ExecutionPlan:
    """*plan* as a library stores it: with the constants packed, except those that ``init`` packs.

    A program for another machine packs all of them there.

    Args:
        versions: Of the program *name* in the library; all read the same original constants.
    """
    if not plan.target.runs_on_host():
        return plan
    left = growing(plan, versions) if pack is Pack.AT_INIT else []
    if len(left) == len(plan.packs):
        return plan
    now = [step for step in plan.packs if step not in left]
    return settled(plan, make_pool(replace(plan, packs=tuple(now)), name), left)


@dataclass(frozen=True)
class Places:
    """Where the constants of a plan are.

    Args:
        symbol: Name of the contents.
        in_file: Offset in the contents of each offset in the pool.
        raw: Offset in the contents of each of ``plan.raw``.
        made: Offset in memory that ``init`` fills, of each other offset in the pool.
        made_bytes: Bytes of that memory.
    """

    symbol: str
    in_file: Mapping[int, int]
    raw: tuple[int, ...]
    made: Mapping[int, int]
    made_bytes: int


@dataclass
class Contents:
    """The constants in a library's file, equal ones once; *symbol* is their name."""

    symbol: str
    size: int = 0
    pieces: list[memoryview] = field(default_factory=list)
    _known: dict[bytes, int] = field(default_factory=dict)

    def add(self, plan: ExecutionPlan) -> Places:
        """Add what *plan* reads."""
        in_file = {offset: self._place(array) for offset, array in plan.direct}
        raw = tuple(map(self._place, plan.raw))
        made, size = {}, 0
        for step in plan.packs:
            for offset, count in results(step):
                made[offset] = size
                size += padded(count)
        return Places(self.symbol, in_file, raw, made, size)

    def _place(self, array: Array) -> int:
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        key = hashlib.sha256(data).digest()
        if key not in self._known:
            self._known[key] = self.size
            self.pieces += [data, memoryview(bytes(padded(data.nbytes) - data.nbytes))]
            self.size += padded(data.nbytes)
        return self._known[key]

    @property
    def digest(self) -> bytes:
        """Of all constants."""
        content = hashlib.sha256()
        for key in self._known:
            content.update(key)
        return content.digest()
