"""Run a search from the terminal: progress, Ctrl-C, a table of time spent, and the library."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ansorpy.api.assemble import kernels_median_s
from ansorpy.api.display.board import Board
from ansorpy.api.display.text import comparisons
from ansorpy.api.emitted import emitted_plan, emitted_target
from ansorpy.api.evaluate.lookup import Lookup
from ansorpy.api.events import PeerTimed
from ansorpy.api.networks import Networks, tune_networks
from ansorpy.api.request import Request
from ansorpy.cli.interrupt import graceful_interrupt
from ansorpy.cli.next_command import after_library
from ansorpy.cli.progress import SearchReport, Talk
from ansorpy.errors import Interrupted, NoValidProgram
from ansorpy.evaluation.proofs import ProofCounts
from ansorpy.evaluation.tables import say, show
from ansorpy.evaluation.tuning import activities_table
from ansorpy.profiler import Activity, Profiler, profiled
from ansorpy.quantities import latency_text, ms_of
from ansorpy.runtime.execution_plan import ExecutionPlan
from ansorpy.runtime.export import export as export_plan
from ansorpy.runtime.export import export_versions
from ansorpy.runtime.header import beside
from ansorpy.runtime.library.forms import Pack
from ansorpy.runtime.library.linker import refuse_size

__all__ = ["Version", "Written", "accounted", "followed", "write_library"]


@contextmanager
def followed(
    request: Request, talk: Talk, exports: Sequence[str]
) -> Iterator[tuple[Request, Board]]:
    """*request* with its search shown and stopped by Ctrl-C where nothing is lost, and its board.

    Args:
        exports: The commands that write what a stopped search has found.

    Raises:
        Interrupted: The user stopped the search; the records so far are in the database.
    """
    report = SearchReport(talk)
    with graceful_interrupt() as interrupt, report:
        following = replace(request, stop=interrupt.stop_here, listener=report, is_quiet=talk.quiet)
        try:
            yield following, report.board
        except KeyboardInterrupt:
            hint = "the same command continues"
            if exports:
                hint = "\n  ".join([f"{hint}; to write what was found:", *exports])
            said = f"interrupted; the trials so far are in {request.db}"
            raise Interrupted(said, hint=hint) from None


@contextmanager
def accounted(request: Request, talk: Talk) -> Iterator[None]:
    """When the block ends, print how the run spent its time, if *request* measures.

    This happens only if *talk* is verbose, and even if the user stopped the run or no program was
    correct.
    """
    profiler = Profiler()
    try:
        with profiler:
            yield
    except (Interrupted, NoValidProgram):
        _show_activities(profiler, request, talk)
        raise
    _show_activities(profiler, request, talk)


def _show_activities(profiler: Profiler, request: Request, talk: Talk) -> None:
    if request.budget is not None and talk.verbose and talk.shows_text:
        show(activities_table(profiler.seconds), sys.stderr)


@dataclass(frozen=True)
class Version:
    """What a library has for one target.

    Args:
        kernels_s: Sum of what its kernels took alone; None if they were never timed.
        board: What the search reported.
    """

    plan: ExecutionPlan
    kernels_s: float | None
    proofs: ProofCounts
    board: Board

    def to_dict(self) -> dict[str, Any]:
        """As JSON-serializable values."""
        return {
            "target": self.plan.target.name,
            "kernels_ms": ms_of(self.kernels_s),
            "untuned_ms": ms_of(self.board.untuned_s),
            "peers_ms": {name: s * 1e3 for name, s in self.board.peers.items()},
            "trials": self.board.got,
            "memory": self.plan.footprint.to_dict(),
            "proofs": asdict(self.proofs),
        }

    def said(self, name: str) -> list[str]:
        """What was reached, in lines that begin with *name*."""
        parts = [] if self.kernels_s is None else [f"{latency_text(self.kernels_s)} in kernels"]
        parts += comparisons(self.board)
        lines = [", ".join(parts), str(self.plan.footprint), str(self.proofs)]
        return [f"{name}{line}" for line in lines if line]


@dataclass(frozen=True)
class Written:
    """A library, or another form, that was written: with a version for each of its targets."""

    path: Path
    versions: Sequence[Version]
    records: Path

    @property
    def header(self) -> Path:
        """The header that declares its functions."""
        return beside(self.path)[0]

    def to_dict(self) -> dict[str, Any]:
        """The last event of a verb with ``--json``."""
        return {
            "event": "result",
            "library": str(self.path),
            "header": str(self.header),
            "records": str(self.records),
            "versions": [version.to_dict() for version in self.versions],
        }

    def said(self, lookup: Lookup) -> str:
        """What was reached, where everything is, and how to go on with *lookup*, in lines."""
        lines = [f"wrote {self.path}"]
        for version in self.versions:
            lines += version.said(f"{version.plan.target.name}: " if self.versions[1:] else "")
        header, example = beside(self.path)
        lines.append(f"header {header}, example {example}, records in {self.records}")
        runs_here = any(version.plan.target.runs_on_host() for version in self.versions)
        threads = self.versions[0].plan.threads
        command = after_library(self.path, lookup, threads) if runs_here else ""
        return "\n".join([*lines, f"next: {command}"] if command else lines)

    def tell(self, talk: Talk, lookup: Lookup) -> None:
        """Print the result for *lookup* on stdout."""
        if talk.json:
            print(json.dumps(self.to_dict()))
        else:
            say(self.said(lookup))


def write_library(
    runs: Sequence[tuple[Networks, Request]],
    library: Path,
    pack: Pack | None,
    talk: Talk,
    peers: Sequence[PeerTimed] = (),
    exports: Sequence[str] = (),
) -> Written:
    """Compile a network to *library*, and compare it with *peers*.

    C is written if the name ends in ``.c``, whatever target the programs were chosen for.

    Args:
        runs: The network for each target that the library has a version for.
        exports: The command that writes what was found if the user stops the search.

    Raises:
        UsageError: No library holds constants of this size.
    """
    versions = [_version(*run, library, talk, peers, exports) for run in runs]
    plans = [version.plan for version in versions]
    with profiled(Activity.ASSEMBLE):
        if len(plans) == 1:
            export_plan(plans[0], library, pack)
        else:
            export_versions(plans, library, pack)
    return Written(library, versions, runs[0][1].db)


def _version(
    networks: Networks, request: Request, library: Path, talk: Talk, peers: Sequence[PeerTimed],
    exports: Sequence[str],
) -> Version:  # fmt: skip
    if emitted_target(library, request.target, request.threads) is request.target:
        [project] = networks.projects
        refuse_size(project.constant_bytes, project.target)
    with followed(request, talk, exports) as (following, board):
        for peer in peers:
            following.listener(peer)
        [finished] = tune_networks(networks, following)
    with profiled(Activity.ASSEMBLE):
        plan = emitted_plan(finished.project, finished.chosen, library, request.threads)
    proofs = ProofCounts.of([proof for program in finished.chosen for proof in program.proofs])
    return Version(plan, kernels_median_s(finished.project, finished.chosen), proofs, board)
