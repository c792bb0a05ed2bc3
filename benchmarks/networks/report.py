"""Tables of the results, for terminals and documents."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import geometric_mean

from ansorpy.evaluation.tables import Table
from benchmarks.common.cells import engine_ms, engines_of, milliseconds, two_digits
from benchmarks.networks.result import NetworkResult
from benchmarks.zoo.light import NAMES

__all__ = ["means_table", "networks_table"]


def networks_table(results: Sequence[NetworkResult]) -> Table:
    """One row per network and thread count.

    ``kernels ms`` is the sum of the kernels' own times, ``share`` the roofline divided by our time,
    and ``error`` our largest difference from onnxruntime divided by its largest output.
    """
    engines = engines_of(results)
    heading = (
        "network", "threads", "effort", *(f"{name} ms" for name in engines), "ratio",
        "roofline ms", "share", "kernels ms", "kernels", "tasks", "error",
    )  # fmt: skip
    rows = [
        (
            r.label, str(r.threads), r.effort, *(engine_ms(r, name) for name in engines),
            two_digits(r.ratio), milliseconds(r.roofline_ms),
            "" if r.share is None else f"{r.share:.0%}",
            "" if r.kernels_ms is None else milliseconds(r.kernels_ms),
            str(r.kernels), str(r.tasks),
            "" if r.error is None else f"{r.error:.0e}",
        )
        for r in results
    ]  # fmt: skip
    return Table("", heading, tuple(rows), frozenset((heading[1], *heading[3:])))


def means_table(results: Sequence[NetworkResult]) -> Table:
    """Geometric mean and minimum of the ratios, for the light networks, the others and all."""
    groups = {
        "light": [r for r in results if r.network in NAMES and r.batch == 1],
        "others": [r for r in results if r.network not in NAMES or r.batch > 1],
        "all": list(results),
    }
    rows = []
    for name, members in groups.items():
        for threads in sorted({r.threads for r in members}):
            ratios = [r.ratio for r in members if r.threads == threads and r.ratio is not None]
            if ratios:
                mean, least = geometric_mean(ratios), min(ratios)
                rows.append(
                    (name, str(threads), str(len(ratios)), two_digits(mean), two_digits(least))
                )
    heading = ("networks", "threads", "measured", "ratio", "least")
    return Table("", heading, tuple(rows), frozenset(heading[1:]))
