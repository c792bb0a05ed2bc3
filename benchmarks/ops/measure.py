"""One case at one number of threads: tune it, check every engine, time them in turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import ansorpy as ap
from ansorpy.errors import AnsorpyError
from ansorpy.report.bench.turns import Contender, Policy, Timing, compare
from ansorpy.tasks.budget import Effort
from benchmarks.ops.case import Case
from benchmarks.ops.reference import Reference

__all__ = ["OURS", "PEERS", "Measured", "Settings", "installed_peers", "measure"]

OURS = "ansorpy"
PEERS = ("onnxruntime", "openvino", "torch")
_FACTORIES = {
    "onnxruntime": "benchmarks.ops.engines:open_onnx",
    "openvino": "benchmarks.ops.engines:open_onnx",
    "torch": "benchmarks.ops.engines:open_torch",
    OURS: "benchmarks.ops.engines:open_ours",
}

# Cases take microseconds to milliseconds, so a burst can be short and still hold many calls.
POLICY = Policy(burst_s=0.15, untimed_s=0.05, rounds=(7, 15))


@dataclass(frozen=True)
class Settings:
    """What all cases of a run share; ``db`` keeps the records the engines' processes read."""

    db: Path
    trials: int = 128
    effort: Effort = "full"
    seed: int = 0
    peers: Sequence[str] = PEERS
    policy: Policy = POLICY


@dataclass(frozen=True)
class Measured:
    """What came out; ``failures`` has the reason of each engine that has no timing."""

    case: Case
    threads: int
    timings: Mapping[str, Timing]
    failures: Mapping[str, str] = field(default_factory=dict)
    program: str = ""
    tuning_s: float = 0.0

    @property
    def ours_ms(self) -> float | None:
        """Our median, or None where we failed."""
        return self.timings[OURS].median_ms if OURS in self.timings else None

    @property
    def best_peer(self) -> str | None:
        """The peer with the least median."""
        peers = [name for name in self.timings if name != OURS]
        return min(peers, key=lambda name: self.timings[name].median_ms, default=None)

    @property
    def ratio(self) -> float | None:
        """The best peer's median over ours: above 1 we are faster."""
        if self.ours_ms is None or self.best_peer is None:
            return None
        return self.timings[self.best_peer].median_ms / self.ours_ms


def installed_peers() -> list[str]:
    """Those of :data:`PEERS` whose package is here."""
    return [name for name in PEERS if find_spec(name) is not None]


def measure(
    case: Case, threads: int, settings: Settings, progress: Callable[[str], None]
) -> Measured:
    """Tune *case* for *threads* as far as the database does not hold the trials, then compare."""
    failures: dict[str, str] = {}
    start, program = monotonic(), ""
    try:
        program = tuned(case, threads, settings).program
    except AnsorpyError as error:
        failures[OURS] = error.message
    tuning_s = monotonic() - start
    progress(f"{case.name}: tuned for {threads} threads in {tuning_s:.1f} s")

    def left_out(name: str, error: AnsorpyError) -> None:
        failures[name] = error.message

    with TemporaryDirectory(prefix="ops-") as folder:
        reference = Path(folder, "reference.npz")
        Reference.of(case, settings.seed).save(reference)
        names = [OURS, *settings.peers] if OURS not in failures else list(settings.peers)
        contenders = [_contender(n, case, threads, settings, reference) for n in names]
        timings = compare(contenders, settings.policy, left_out=left_out)
    return Measured(case, threads, timings, failures, program, tuning_s)


def tuned(case: Case, threads: int, settings: Settings) -> Any:
    """The kernel of the best program known after the settings' trials."""
    return ap.tune(
        case.tensors(),
        trials=settings.trials if settings.effort != "none" else None,
        effort=settings.effort,
        threads=threads,
        db=settings.db,
        seed=settings.seed,
    )


def _contender(
    name: str, case: Case, threads: int, settings: Settings, reference: Path
) -> Contender:
    arguments: dict[str, Any] = {
        "case": case.name, "threads": threads, "seed": settings.seed, "reference": str(reference),
    }  # fmt: skip
    if name == OURS:
        arguments["db"] = str(settings.db)
    elif name != "torch":
        arguments["engine"] = name
    return Contender(name, _FACTORIES[name], arguments)
