"""What an entry is generated from, and where its functions find constants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ansorpy.codegen.llvm.emit.text import FunctionText
from ansorpy.runtime.cpu_features import required_features
from ansorpy.runtime.entry.text import at
from ansorpy.runtime.execution_plan import ExecutionPlan
from ansorpy.runtime.library.storage import Places

__all__ = ["DONE", "NEW", "EntrySource", "constants"]

NEW, DONE = 0, 1
"""States of ``init``; after it has returned status *code*, the state is ``DONE + code``.  While it
works, the state is the negative number of its process."""


@dataclass(frozen=True)
class EntrySource:
    """Input for generating an entry.

    Args:
        name: Prefix of all symbols.
        places: Where the constants are; None if the loader stores the address of the packed ones in
            ``<name>_pool``.
        metadata: Contents of ``<name>_metadata``; omitted when empty.
        is_timed: Each run writes the nanoseconds that each call took to the elements behind the
            first of ``i64 <name>_stamps[1 + calls]``; only one run at a time is then possible.
        is_traced: Timed calls are events, too (:mod:`ansorpy.codegen.llvm.threads.traced`).
    """

    plan: ExecutionPlan
    name: str
    places: Places | None = None
    metadata: str = ""
    is_timed: bool = False
    is_traced: bool = False

    @property
    def features(self) -> tuple[str, ...]:
        """CPU features that ``init`` checks."""
        return required_features(self.plan.target)

    @property
    def made_bytes(self) -> int:
        """Bytes of the memory for constants that ``init`` packs."""
        return 0 if self.places is None else self.places.made_bytes


def constants(text: FunctionText, source: EntrySource) -> Callable[[int], str]:
    """A function that emits the address of each offset in the pool."""
    places = source.places
    if places is None:
        pool = text.define(f"load ptr, ptr @{source.name}_pool, align 8")
        return lambda offset: at(text, pool, offset)

    def address(offset: int) -> str:
        if offset in places.made:
            return at(text, "@made", places.made[offset])
        return at(text, f"@{places.symbol}", places.in_file[offset])

    return address
