"""The page of the documentation that says what passes: made from the results, never written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from tests.campaigns.conformance.results import VERDICTS, Result

__all__ = ["PAGE", "page"]

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "onnx_support.md"

_HEAD = """# What of onnx's backend suite passes

The {count:,} cases of the suite that need no GPU, run by `make conformance`: {counts}. One passes
if the runner of onnx accepts its outputs, and if other data, or smaller sizes where all inputs are
sizes, run the same code and agree with onnxruntime or the reference of onnx. *Folded* are cases all
of whose inputs must be known: nothing is left to compile.

`python -m tests.campaigns.conformance --accept` makes this page from the results in
`tests/campaigns/conformance/results.csv`; a test compares them.

| operator | opsets | types | cases | verdict | reason |
|---|---|---|---|---|---|
"""


def page(results: Iterable[Result]) -> str:
    """The page for *results*: a row for each operator, verdict and reason."""
    found = sorted(results, key=_row)
    counts = Counter(result.verdict for result in found)
    said = ", ".join(f"{counts[verdict]:,} {verdict}" for verdict in VERDICTS if counts[verdict])
    rows = (_line(list(group)) for _, group in groupby(found, key=_row))
    return _HEAD.format(count=len(found), counts=said) + "".join(rows)


def _row(result: Result) -> tuple[str, int, str]:
    return result.operator, VERDICTS.index(result.verdict), result.reason


def _line(group: list[Result]) -> str:
    first = group[0]
    opsets = sorted({result.opset for result in group})
    shown = f"{opsets[0]}" if len(opsets) == 1 else f"{opsets[0]}-{opsets[-1]}"
    types = sorted({kind for result in group for kind in result.types.split()})
    reason = first.reason.replace("|", "\\|")
    cells = (first.operator, shown, ", ".join(types), str(len(group)), first.verdict, reason)
    return f"| {' | '.join(cells)} |\n"
