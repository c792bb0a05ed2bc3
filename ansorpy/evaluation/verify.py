"""Comparison of outputs with a reference, relative to the largest output; NaN fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np

from ansorpy.arrays import Array, Floats, Masks
from ansorpy.errors import UsageError, VerificationFailed
from ansorpy.evaluation.onnx_edit import FinalSoftmax
from ansorpy.evaluation.tables import Table

__all__ = ["DEFAULT_TOLERANCE", "OutputCheck", "Verification", "check_output", "compare_outputs"]

# Relative to the largest output; in our test networks, reordered float32 sums stay well below it.
DEFAULT_TOLERANCE = 2e-5

_INEXACT = (
    "allow more with --tolerance, such as 0.02 for a quantised network, or compile with "
    "--precision strict"
)
"""What to do about outputs that are near those of the reference."""

# A float32 probability below this no longer determines its logit accurately.
LEAST_PROBABILITY = 1e-30


@dataclass(frozen=True)
class OutputCheck:
    """Comparison of one output; ``error`` is the ratio of largest difference to largest value.

    Where a softmax is compared by row, ``error`` and ``tolerance`` are those of the worst row.
    """

    name: str
    error: float
    largest: float
    tolerance: float
    problem: str = ""

    @property
    def ok(self) -> bool:
        """True when the output is finite, of the right shape and within tolerance."""
        return not self.problem and self.error <= self.tolerance


@dataclass(frozen=True, repr=False)
class Verification:
    """The checks of all outputs against one reference."""

    model: str
    against: str
    checks: tuple[OutputCheck, ...]

    @property
    def ok(self) -> bool:
        """True when every output passed."""
        return all(check.ok for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON-serializable values."""
        rows = [
            {
                "name": c.name,
                "error": c.error if np.isfinite(c.error) else None,
                "largest": c.largest if np.isfinite(c.largest) else None,
                "tolerance": c.tolerance,
                "ok": c.ok,
                "problem": c.problem,
            }
            for c in self.checks
        ]
        return {"model": self.model, "against": self.against, "ok": self.ok, "outputs": rows}

    def table(self) -> Table:
        """One row per output."""
        rows = tuple(
            (
                c.name,
                f"{c.error:.2e}",
                f"{c.tolerance:.0e}",
                f"{c.largest:.4g}",
                "ok" if c.ok else c.problem or "differs",
            )
            for c in self.checks
        )
        heading = ("output", "error", "tolerance", "largest", "result")
        numeric = frozenset(heading[1:4])
        return Table(f"{self.model} against {self.against}", heading, rows, numeric)

    def __repr__(self) -> str:
        result = "ok" if self.ok else "differs"
        return f"<Verification {self.model} against {self.against}: {result}>"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def demand(self) -> None:
        """Raise :class:`VerificationFailed`, naming the outputs, unless all passed."""
        bad = [c for c in self.checks if not c.ok]
        if bad:
            named = "; ".join(f"{c.name}: {c.problem or f'error {c.error:.2e}'}" for c in bad)
            raise VerificationFailed(
                f"{len(bad)} of {len(self.checks)} outputs differ from {self.against}: {named}",
                hint=None if all(c.problem for c in bad) else _INEXACT,
            )


def compare_outputs(
    model: str,
    against: str,
    ours: Mapping[str, Array],
    theirs: Mapping[str, Array],
    softmaxes: Mapping[str, FinalSoftmax],
    tolerance: float = DEFAULT_TOLERANCE,
) -> Verification:
    """Check each of *ours* against the value of the same name in *theirs*.

    ``softmaxes`` names the outputs that a softmax computes.  If *ours* has the softmax's input, it
    is checked like any output; if not (a library returns only probabilities), the logarithms are
    checked instead.  Both are also compared row by row, up to the constant that a softmax ignores,
    where the probability is not negligible, with the magnitude of such logits in that row.  An
    allowed absolute error ``d`` of the input becomes a factor ``exp(2 d)`` in the softmax, so the
    probabilities of the row may differ by this factor.

    So masks excuse no errors, however large their numbers, except in rows that they mask wholly by
    a finite number: there it is the magnitude of all logits, and float32 keeps little else.  Minus
    infinity must be where *theirs* has it.

    Raises:
        UsageError: *theirs* lacks an output, so it belongs to another network.
    """
    missing = [name for name in ours if name not in theirs]
    if missing:
        raise UsageError(
            f"{against} gives {', '.join(theirs)}, but {model} has the output {missing[0]}",
            hint="compare it with the network that it was compiled from",
        )
    readers = {softmax.input: softmax for softmax in softmaxes.values()}
    checks = []
    for name, value in ours.items():
        check = check_output(name, value, theirs[name], tolerance, softmax=readers.get(name))
        if name in softmaxes and not check.problem:
            logits = theirs[softmaxes[name].input]
            check = _by_row(check, softmaxes[name], value, theirs[name], logits)
        checks.append(check)
    for output, softmax in softmaxes.items():
        if output in ours and softmax.input not in ours:
            logits = theirs[softmax.input]
            checks.append(_check_logits(output, softmax, ours[output], logits, tolerance))
    return Verification(model, against, tuple(checks))


def check_output(
    name: str, got: Array, want: Array, tolerance: float, *, softmax: FinalSoftmax | None = None
) -> OutputCheck:
    """Compare one output in float64; integers and booleans must match exactly.

    If *softmax* reads it, both may be minus infinity at the same elements, and those that matter
    to the softmax are also compared row by row.
    """
    if got.shape != want.shape:
        problem = f"shape {got.shape} where the reference has {want.shape}"
        return OutputCheck(name, np.inf, np.nan, tolerance, problem)
    if got.dtype != want.dtype:
        problem = f"type {got.dtype} where the reference has {want.dtype}"
        return OutputCheck(name, np.inf, np.nan, tolerance, problem)
    if got.dtype.kind in "iub":
        wrong = int(np.count_nonzero(got != want))
        problem = f"{wrong} of {want.size} elements differ" if wrong else ""
        return OutputCheck(name, wrong / max(1, want.size), float(want.size), 0.0, problem)
    ours, theirs = got.astype(np.float64), want.astype(np.float64)
    if softmax is not None:
        hidden = np.isneginf(ours) & np.isneginf(theirs)
        ours[hidden] = theirs[hidden] = 0.0
    for array, whose in ((theirs, "the reference's output"), (ours, "the output")):
        if not np.isfinite(array).all():
            problem = f"{whose} has NaN or infinite values"
            return OutputCheck(name, np.inf, np.nan, tolerance, problem)
    check = _checked(name, ours, theirs, tolerance)
    if softmax is None:
        return check
    theirs = softmax.rows(want.astype(np.float64))
    by_row = _check_rows(name, softmax.rows(got.astype(np.float64)), theirs, tolerance)
    return max(check, by_row, key=attrgetter("error"))


def _by_row(
    check: OutputCheck, softmax: FinalSoftmax, got: Array, want: Array, logits: Array
) -> OutputCheck:
    """The *check* of probabilities, with the tolerance of each row's logits."""
    if got.size != logits.size or not got.size:
        return check
    difference = np.abs(got.astype(np.float64) - want.astype(np.float64)).reshape(logits.shape)
    errors = softmax.rows(difference).max(axis=1) / check.largest
    magnitudes = _magnitudes(softmax.rows(logits.astype(np.float64)))
    allowed = check.tolerance * np.maximum(1.0, 2.0 * magnitudes)
    ratios = np.where(errors > 0.0, np.inf, 0.0)  # a tolerance of 0 allows no error
    worst = np.argmax(np.divide(errors, allowed, out=ratios, where=allowed > 0.0))
    return replace(check, error=float(errors[worst]), tolerance=float(allowed[worst]))


def _check_logits(
    name: str, softmax: FinalSoftmax, probabilities: Array, logits: Array, tolerance: float
) -> OutputCheck:
    """Compare log(p) with the reference's logits, by row; some row must show two of them."""
    label = f"log({name})"
    if probabilities.size != logits.size:
        return OutputCheck(label, np.inf, np.nan, tolerance, "the number of elements differs")
    ours = softmax.rows(probabilities.astype(np.float64).reshape(logits.shape))
    theirs = softmax.rows(logits.astype(np.float64))
    shown, finite = (m.sum(axis=1).max(initial=0) for m in (_likely(theirs), np.isfinite(theirs)))
    if shown < min(2, finite):
        problem = "the softmax is saturated and hides its input; verify the .onnx file instead"
        largest = float(_magnitudes(theirs).max())
        return OutputCheck(label, np.inf, largest, tolerance, problem)
    logs = np.log(np.maximum(ours, np.finfo(np.float32).smallest_subnormal))
    return _check_rows(label, logs, theirs, tolerance)


def _check_rows(name: str, ours: Floats, theirs: Floats, tolerance: float) -> OutputCheck:
    """Compare the likely logits of each row, up to a constant, with the magnitude of the row's."""
    likely = _likely(theirs)
    difference = np.where(likely, ours, 0.0) - np.where(likely, theirs, 0.0)
    count = np.maximum(1, likely.sum(axis=1, keepdims=True))
    difference -= difference.sum(axis=1, keepdims=True) / count
    magnitudes = _magnitudes(theirs)
    errors = np.abs(difference).max(axis=1, initial=0.0, where=likely) / magnitudes
    error, largest = float(errors.max(initial=0.0)), float(magnitudes.max(initial=0.0))
    return OutputCheck(name, error, largest, tolerance)


def _likely(logits: Floats) -> Masks:
    """Where the probabilities of rows of *logits* are not below the least."""
    with np.errstate(divide="ignore", invalid="ignore"):  # rows without finite logits
        below = logits - logits.max(axis=1, keepdims=True, initial=-np.inf)
        logs = below - np.log(np.exp(below).sum(axis=1, keepdims=True))
    return np.asarray(logs > np.log(LEAST_PROBABILITY))


def _magnitudes(logits: Floats) -> Floats:
    """For each row the largest magnitude of its likely logits, but no less than any row's range.

    So rounding in a row of small logits is not compared with these.  A range is small, even if all
    of its row is masked.
    """
    likely = _likely(logits)
    largest = np.abs(logits).max(axis=1, initial=0.0, where=likely)
    high = logits.max(axis=1, initial=-np.inf, where=likely)
    ranges = high - logits.min(axis=1, initial=np.inf, where=likely)
    magnitudes = np.maximum(largest, ranges.max(initial=0.0))
    return np.where(magnitudes > 0.0, magnitudes, 1.0)


def _checked(name: str, ours: Floats, theirs: Floats, tolerance: float) -> OutputCheck:
    largest = float(np.abs(theirs).max(initial=0.0))
    difference = float(np.abs(ours - theirs).max(initial=0.0))
    error = difference / largest if largest > 0 else difference
    return OutputCheck(name, error, largest, tolerance)
