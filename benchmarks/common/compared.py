"""Times of several engines on one thing, as results keep them, with the machine and the code."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Self, TypeAlias

from pydantic import BaseModel, ConfigDict

import ansorpy
from ansorpy.config import available_cores
from ansorpy.errors import ForeignFile
from ansorpy.evaluation.bench.turns import Timing
from ansorpy.target import machine_name
from ansorpy.version import __version__
from ansorpy.writable import replacing
from benchmarks.common.cells import OURS

__all__ = [
    "Compared", "EngineTime", "Machine", "Stored", "code_version", "engine_times", "this_machine",
]  # fmt: skip

Machine: TypeAlias = Mapping[str, str | int]


class Stored(BaseModel):
    """A part of a result, stored as JSON; a file with other fields is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def write(self, path: Path) -> None:
        """Write it atomically: a run that is stopped leaves either the old or the new file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as made:
            made.write_text(self.model_dump_json(indent=2) + "\n")

    @classmethod
    def read(cls, path: Path, benchmark: str) -> Self:
        """Read the result that *benchmark* stored in *path*.

        Raises:
            ForeignFile: *path* is not one.
        """
        try:
            return cls.model_validate_json(path.read_text())
        except (OSError, ValueError) as error:  # a ValidationError is a ValueError
            raise ForeignFile(f"{path} has no result of benchmarks.{benchmark}: {error}") from None


class EngineTime(Stored):
    """An engine's times: median and minimum of ``runs`` calls."""

    median_ms: float
    min_ms: float
    runs: int
    version: str


class Compared(Stored):
    """What several engines ran; ``engines`` has those that did not fail, ours first."""

    engines: Mapping[str, EngineTime]

    @property
    def ours_ms(self) -> float | None:
        """Our median, or None if we failed."""
        return self.engines[OURS].median_ms if OURS in self.engines else None

    @property
    def best_peer(self) -> str | None:
        """The peer with the smallest median."""
        peers = [name for name in self.engines if name != OURS]
        return min(peers, key=lambda name: self.engines[name].median_ms, default=None)

    @property
    def best_peer_ms(self) -> float | None:
        """Its median."""
        return None if self.best_peer is None else self.engines[self.best_peer].median_ms

    @property
    def ratio(self) -> float | None:
        """The best peer's median divided by ours; above 1, we are faster."""
        if self.ours_ms is None or self.best_peer_ms is None:
            return None
        return self.best_peer_ms / self.ours_ms


def engine_times(timings: Mapping[str, Timing]) -> dict[str, EngineTime]:
    """*timings* in the form that results keep."""
    return {
        name: EngineTime(median_ms=t.median_ms, min_ms=t.min_ms, runs=t.runs, version=t.version)
        for name, t in timings.items()
    }


def this_machine() -> Machine:
    """Description of this machine that is stored with results."""
    return {"cpu": machine_name(), "cores": available_cores()}


@cache
def code_version() -> str:
    """The version, and a digest of the package's sources: equal for equal code."""
    folder = Path(ansorpy.__file__).parent
    digest = sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:8]}"
