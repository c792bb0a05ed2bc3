"""Comparisons as sentences and tables of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from statistics import median

from benchmarks.common.cells import markdown
from benchmarks.study.comparison import Comparison, Scores

__all__ = ["figure", "learnt", "standings_table"]


def figure(value: float) -> str:
    """Three significant digits, without an exponent."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def standings_table(
    found: Comparison, scores: Scores, unit: str, labels: Mapping[str, str], reference: str
) -> str:
    """The standings in Markdown, then each contestant's median on each subject."""
    subjects = list(dict.fromkeys(s for one in found.standings for s in scores[one.name]))
    heading = (
        "", f"{unit}, mean (95 %)", "mean rank", f"better than {labels[reference]} on", "worse on",
        *subjects,
    )  # fmt: skip
    rows = [
        (
            labels[s.name], f"{figure(s.mean)} ({figure(s.low)}-{figure(s.high)})", f"{s.rank:.1f}",
            *(("-", "-") if s.name == reference else (str(s.better), str(s.worse))),
            *(_median(scores[s.name].get(subject)) for subject in subjects),
        )
        for s in found.standings
    ]  # fmt: skip
    return markdown(heading, rows)


def learnt(found: Comparison, labels: Mapping[str, str], reference: str) -> str:
    """Who leads, by how much, and whether that is more than chance."""
    left_out = ", ".join(labels[name] for name in found.incomplete)
    rest = _tests(found) + (f" Not on all subjects: {left_out}." if left_out else "")
    first, usual = found.standings[0], next(s for s in found.standings if s.name == reference)
    if first is usual:
        ties = [labels[s.name] for s in found.standings[1:] if s.low <= first.high]
        said = f"{labels[reference]} leads; intervals that overlap with its: "
        return f"{said}{', '.join(ties) or 'none'}. {rest}"
    apart = usual.rank - first.rank > found.critical_distance
    return (
        f"{labels[first.name]} leads, with {first.mean / usual.mean:.2f} of the mean of "
        f"{labels[reference]}: better on {first.better} of {found.subjects} subjects, worse on "
        f"{first.worse}; their mean ranks {'differ' if apart else 'do not differ'} significantly. "
        f"{rest}"
    )


def _tests(found: Comparison) -> str:
    said = f"Geometric means over {found.subjects} subjects of medians over the seeds."
    if isnan(found.p):
        return said
    return (
        f"{said} Friedman's test over the subjects: p = {found.p:.2g}; mean ranks that differ by "
        f"less than {found.critical_distance:.1f} do not differ significantly (Nemenyi). Better "
        "and worse: subjects with a significant difference between the seeds (Mann-Whitney, Holm)."
    )


def _median(values: Sequence[float] | None) -> str:
    return figure(median(values)) if values else ""
