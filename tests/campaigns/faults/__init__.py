"""A campaign of faults: kills, full disks, locked databases, bad workers, lost machines."""

from __future__ import annotations

__all__: list[str] = []
