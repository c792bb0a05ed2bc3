"""Memory that a compiled program needs while it runs."""

from __future__ import annotations

from dataclasses import dataclass

from ansorpy.quantities import bytes_text

__all__ = ["Footprint"]


@dataclass(frozen=True)
class Footprint:
    """Bytes that one run needs.

    Args:
        constants: Constants as the code reads them: packed, padded, transformed; shared by all
            runs.
        arena: Intermediate values.
        workspace: Scratch memory of the call that needs the most, for all of its threads; on a GPU,
            of that call in each branch of calls that overlap.  None before code is generated; the
            constants are then the original ones, and no result overwrites an operand.
        ports: Inputs and outputs, which the caller owns.
    """

    constants: int
    arena: int
    workspace: int | None
    ports: int

    @property
    def peak(self) -> int | None:
        """The sum of all parts, an upper bound on any run; None before code is generated."""
        if self.workspace is None:
            return None
        return self.constants + self.arena + self.workspace + self.ports

    def to_dict(self) -> dict[str, int | None]:
        """The sizes in bytes, as JSON-serializable values."""
        return {
            "constant_bytes": self.constants,
            "arena_bytes": self.arena,
            "workspace_bytes": self.workspace,
            "port_bytes": self.ports,
            "peak_bytes": self.peak,
        }

    def __str__(self) -> str:
        parts = f"inputs and outputs {bytes_text(self.ports)}"
        if self.workspace is None or self.peak is None:
            return (
                f"memory, before compilation: constants {bytes_text(self.constants)}, "
                f"arena {bytes_text(self.arena)}, {parts}"
            )
        return (
            f"{bytes_text(self.peak)} at the peak of a run: "
            f"constants {bytes_text(self.constants)}, "
            f"arena {bytes_text(self.arena)}, workspace {bytes_text(self.workspace)}, {parts}"
        )
