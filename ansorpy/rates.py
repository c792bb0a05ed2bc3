"""The measured rates of a machine, which can be stored in a file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from ansorpy.errors import ForeignFile

__all__ = ["Rates"]


@dataclass(frozen=True)
class Rates:
    """The measured rates of a machine, which the analytic cost model uses.

    Args:
        clock_hz: Cycles per second; the per-cycle rates below refer to this clock.
        vector_ops_per_cycle: Multiply-adds on the widest vectors, on one core.
        narrow_ops_per_cycle: The same on vectors half as wide.
        stores_per_cycle: Stores of the widest vectors, on one core.
        l2_bytes_per_cycle: Read by one core from its second-level cache.
        l3_bytes_per_cycle: Read by one core alone from the last-level cache.
        l3_bytes_per_s: Read by all cores together from the last-level cache.
        dram_core_bytes_per_s: Read by one core alone from memory.
        dram_bytes_per_s: Read by all cores together from memory.
        fork_join_s: Overhead of a parallel region over all cores; 0 with a single core.
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
        """Rates by name, for JSON; :meth:`from_dict` reads them back."""
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
