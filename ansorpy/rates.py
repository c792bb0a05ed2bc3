"""What a machine was measured to do, as numbers that can be kept in a file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from ansorpy.errors import ForeignFile

__all__ = ["Rates"]


@dataclass(frozen=True)
class Rates:
    """What a machine was measured to do, as the closed-form cost model reads it.

    Args:
        clock_hz: Cycles a second; those below count per cycle of this clock.
        vector_ops_per_cycle: Multiply-adds of the widest vectors, on one core.
        narrow_ops_per_cycle: The same of vectors half as wide.
        stores_per_cycle: Of the widest vectors, on one core.
        l2_bytes_per_cycle: Read by one core from its second-level cache.
        l3_bytes_per_cycle: Read by one core from the last cache, alone.
        l3_bytes_per_s: Read by all cores together from the last cache.
        dram_core_bytes_per_s: Read from memory by one core alone.
        dram_bytes_per_s: Read from memory by all cores together.
        fork_join_s: What a parallel region of all cores adds; 0 where there is one core.
    """

    clock_hz: float
    vector_ops_per_cycle: float
    narrow_ops_per_cycle: float
    stores_per_cycle: float
    l2_bytes_per_cycle: float
    l3_bytes_per_cycle: float
    l3_bytes_per_s: float
    dram_core_bytes_per_s: float
    dram_bytes_per_s: float
    fork_join_s: float

    def __post_init__(self) -> None:
        values = asdict(self)
        least = values.pop("fork_join_s")
        if not all(0 < value < math.inf for value in values.values()) or not 0 <= least < 1:
            raise ValueError(f"no machine has these rates: {self}")

    def to_dict(self) -> dict[str, float]:
        """Name to number, JSON-able; :meth:`from_dict` gives the same rates back."""
        return asdict(self)

    @staticmethod
    def from_dict(values: Mapping[str, object]) -> Rates:
        """The rates :meth:`to_dict` wrote; raises :class:`ForeignFile` for anything else."""
        names = {field.name for field in fields(Rates)}
        numbers = {k: float(v) for k, v in values.items() if isinstance(v, int | float)}
        try:
            if set(values) != names or set(numbers) != names:
                raise ValueError(f"expected numbers named {', '.join(sorted(names))}")
            return Rates(**numbers)
        except ValueError as error:
            raise ForeignFile(f"not the measured rates of a machine: {error}") from None
