"""Tables of the results, for terminals and documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import geometric_mean, median

from ansorpy.evaluation.tables import Table
from benchmarks.common.cells import OURS, engine_ms, engines_of, markdown, milliseconds, two_digits
from benchmarks.ops.providers import PROVIDERS
from benchmarks.ops.result import Result, Run

__all__ = [
    "calls_table", "cases_table", "document", "groups_table", "providers_table",
    "speedup_table",
]  # fmt: skip


def cases_table(results: Sequence[Result]) -> Table:
    """One row per case and thread count: every engine's time, the ratio, and the roofline share.

    ``with fork`` is the share relative to the roofline plus one fork-join of the threads.
    """
    engines = engines_of(results)
    heading = (
        "case", "threads", *(f"{name} ms" for name in engines), "ratio", "roofline ms", "share",
        "with fork", "algorithm",
    )  # fmt: skip
    rows = [
        (
            r.case, str(r.threads), *(engine_ms(r, name) for name in engines), two_digits(r.ratio),
            milliseconds(r.roofline_ms), _percent(r.share), _percent(r.share_after_fork),
            r.algorithm,
        )
        for r in results
    ]  # fmt: skip
    return Table("", heading, tuple(rows), frozenset(heading[1:-1]))


def groups_table(results: Sequence[Result]) -> Table:
    """Geometric means of the ratios: one row per family, then the whole suite."""
    counts = sorted({r.threads for r in results})
    heading: tuple[str, ...] = ("family", "cases", "bound by")
    for count in counts:
        heading += (f"ratio, {count} thr", f"least, {count} thr", f"share, {count} thr")
    rows = []
    for name, members in _grouped(results):
        row = [name, str(len({r.case for r in members})), _bound(members)]
        for count in counts:
            there = [r for r in members if r.threads == count]
            ratios = [r.ratio for r in there if r.ratio is not None]
            shares = [r.share for r in there if r.share is not None]
            least = min(ratios, default=None)
            row += [two_digits(_mean(ratios)), two_digits(least), _percent(_mean(shares))]
        rows.append(tuple(row))
    return Table("", heading, tuple(rows), frozenset((heading[1], *heading[3:])))


def calls_table(calls: Sequence[Result]) -> Table:
    """Cost of a call from Python in each engine, in microseconds."""
    engines = engines_of(calls)
    heading = ("a call of next to no work", *(f"{name} µs" for name in engines))
    rows = []
    for r in calls:
        times = (f"{r.engines[n].median_ms * 1e3:.1f}" if n in r.engines else "" for n in engines)
        rows.append((f"{r.threads} thr", *times))
    return Table("", heading, tuple(rows), frozenset(heading[1:]))


def providers_table(results: Sequence[Result]) -> Table:
    """What is gained if every case takes its fastest provider, for each thread count.

    One row per provider: the cases that it computes fastest, and by how much it is ahead of ours
    there, as a geometric mean; then all cases with the fastest provider of each.

    Paper: Woodpecker-DL, arXiv 2008.04567, which chooses between its own code and the vendor's
    library by time.  Bolt, MLSys 2022, searches the library's templates, which these packages do
    themselves.  Here it is a comparison: what is compiled and exported is always our own.
    """
    heading = ("provider", "library", "threads", "fastest of", "cases", "ours / fastest")
    known = [r for r in results if r.provider is not None and r.ours_ms is not None]
    rows = []
    for count in sorted({r.threads for r in known}):
        there = [r for r in known if r.threads == count]
        for name in engines_of(there):
            won = [r for r in there if r.provider == name]
            library = PROVIDERS[name].library
            rows.append((name, library, count, len(won), len(there), _mean(_gains(won))))
        rows.append(("fastest of each", "", count, len(there), len(there), _mean(_gains(there))))
    cells = tuple((*map(str, row[:-1]), two_digits(row[-1])) for row in rows)
    return Table("", heading, cells, frozenset(heading[2:]))


def _gains(results: Sequence[Result]) -> list[float]:
    """Our time relative to that of the fastest provider, ours included."""
    pairs = [(r.ours_ms, min(e.median_ms for e in r.engines.values())) for r in results]
    return [ours / fastest for ours, fastest in pairs if ours is not None]


def speedup_table(results: Sequence[Result], earlier: Sequence[Result]) -> Table:
    """Speedup over an earlier run: geometric mean and extremes for each family."""
    before = {r.key: r.ours_ms for r in earlier}
    heading = ("family", "cases", "earlier / now", "least", "most")
    rows = []
    for name, members in _grouped(results):
        pairs = [(before.get(r.key), r.ours_ms) for r in members]
        speedups = [old / new for old, new in pairs if old is not None and new is not None]
        least, most = min(speedups, default=None), max(speedups, default=None)
        figures = map(two_digits, (_mean(speedups), least, most))
        rows.append((name, str(len(speedups)), *figures))
    return Table("", heading, tuple(rows), frozenset(heading[1:]))


def document(run: Run) -> str:
    """The run in Markdown: how it was made, then tables by family and by case."""
    families, calls = groups_table(run.results), calls_table(run.calls)
    parts = [_provenance(run), markdown(families.heading, families.rows), _cases_document(run)]
    if calls.rows:
        parts.append(markdown(calls.heading, calls.rows))
    return "\n\n".join(parts)


def _provenance(run: Run) -> str:
    """One paragraph: machine, versions, effort, and the peaks measured along the way."""
    versions = {n: e.version for r in run.results for n, e in r.engines.items()}
    lines = [
        f"{run.machine.get('cpu', 'a machine')}, {run.machine.get('cores', '?')} cores; "
        + ", ".join(f"{name} {version}" for name, version in versions.items())
        + f"; {len({r.case for r in run.results})} cases, {_trials(run)}."
    ]
    for count in sorted({r.threads for r in run.results}):
        there = [r for r in run.results if r.threads == count]
        peaks = [r.peak_gflops for r in there]
        fork = median(r.fork_join_ms for r in there) * 1e3
        lines.append(
            f"At {count} thread{'s' * (count > 1)}: peak {min(peaks):.0f} to {max(peaks):.0f} "
            f"GFLOP/s" + (f", a fork and join {fork:.1f} µs." if count > 1 else ".")
        )
    return "\n".join(lines)


def _trials(run: Run) -> str:
    """How many each result had; those measured again with another number are counted apart."""
    counts = Counter(r.trials for r in run.results)
    if len(counts) == 1:
        return f"{min(counts)} trials each" if any(counts) else "no trials"
    return ", ".join(
        f"{n} trials for {counts[n]} result{'s' * (counts[n] > 1)}" for n in sorted(counts)
    )


def _cases_document(run: Run) -> str:
    results = run.results
    counts = sorted({r.threads for r in results})
    found = {r.key: r for r in results}
    heading = ["case"]
    for count in counts:
        heading += [f"ms, {count} thr", "algorithm", "best peer", "ratio", "share"]
    rows = []
    for case in dict.fromkeys(r.case for r in results):
        row = [case]
        for count in counts:
            row += _document_cells(found.get((case, count)))
        rows.append(row)
    return markdown(heading, rows)


def _document_cells(r: Result | None) -> list[str]:
    if r is None:
        return [""] * 5
    peer = "" if r.best_peer_ms is None else f"{milliseconds(r.best_peer_ms)} {r.best_peer}"
    return [engine_ms(r, OURS), r.algorithm, peer, two_digits(r.ratio), _percent(r.share)]


def _bound(members: Sequence[Result]) -> str:
    """The roofline bound that most of *members* have."""
    compute = sum(r.bound == "compute" for r in members)
    return "compute" if 2 * compute >= len(members) else "bytes"


def _grouped(results: Sequence[Result]) -> list[tuple[str, list[Result]]]:
    """The results of each family, followed by all results."""
    names = dict.fromkeys(r.group for r in results)
    families = [(name, [r for r in results if r.group == name]) for name in names]
    return [*families, ("all", list(results))]


def _mean(values: Sequence[float]) -> float | None:
    return geometric_mean(values) if values else None


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"
