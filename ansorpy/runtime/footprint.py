"""What memory a compiled program takes while it runs."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Footprint", "bytes_text"]


@dataclass(frozen=True)
class Footprint:
    """Bytes of one run.

    Args:
        constants: As the code reads them: packed, padded, transformed; all runs share them.
        arena: Intermediate values.
        workspace: Scratch of the call that needs most, for all of its threads; None while there
            is no code, when constants are those given and results lie apart from operands.
        ports: Inputs and outputs, which are the caller's.
    """

    constants: int
    arena: int
    workspace: int | None
    ports: int

    @property
    def peak(self) -> int | None:
        """All together: no moment of a run takes more.  None while there is no code."""
        if self.workspace is None:
            return None
        return self.constants + self.arena + self.workspace + self.ports

    def to_dict(self) -> dict[str, int | None]:
        """JSON-able; bytes."""
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
                f"before it is compiled: constants {bytes_text(self.constants)}, "
                f"arena {bytes_text(self.arena)}, {parts}"
            )
        return (
            f"{bytes_text(self.peak)} at the peak of a run: "
            f"constants {bytes_text(self.constants)}, "
            f"arena {bytes_text(self.arena)}, workspace {bytes_text(self.workspace)}, {parts}"
        )


def bytes_text(size: int) -> str:
    """*size* bytes in the largest unit that they fill: ``7.75 MiB``."""
    power = min(max(size.bit_length() - 1, 0) // 10, 3)
    return f"{size / (1 << 10 * power):.4g} {('B', 'KiB', 'MiB', 'GiB')[power]}"
