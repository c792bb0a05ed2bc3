"""Comparison of outputs with a reference, relative to the largest output; NaN fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ansorpy.errors import UsageError, VerificationFailed
from ansorpy.evaluation.onnx_edit import FinalSoftmax
from ansorpy.evaluation.tables import Table

__all__ = ["DEFAULT_TOLERANCE", "OutputCheck", "Verification", "check_output", "compare_outputs"]

# Relative to the largest output; in our test networks, reordered float32 sums stay well below it.
DEFAULT_TOLERANCE = 2e-5

# A float32 probability below this no longer determines its logit accurately.
LEAST_PROBABILITY = 1e-30

Array = NDArray[np.generic]


@dataclass(frozen=True)
class OutputCheck:
    """Comparison of one output; ``error`` is the ratio of largest difference to largest value."""

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
                f"{len(bad)} of {len(self.checks)} outputs differ from {self.against}: {named}"
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
    checked instead, which equal that input up to a constant.  A softmax turns an allowed absolute
    error ``d`` of its input into a factor ``exp(2 d)``, so its output may differ by this factor.
    Networks mask a softmax's input.  What a mask hides excuses no other errors, however large its
    numbers; minus infinity must be where *theirs* has it.

    Raises:
        UsageError: *theirs* lacks an output, so it belongs to another network.
    """
    missing = [name for name in ours if name not in theirs]
    if missing:
        raise UsageError(
            f"{against} gives {', '.join(theirs)}, but {model} has the output {missing[0]}",
            hint="compare it with the network that it was compiled from",
        )
    allowed = {}
    for output, softmax in softmaxes.items():
        rows = softmax.rows(theirs[softmax.input].astype(np.float64))
        allowed[output] = tolerance * max(1.0, 2.0 * _largest(rows, _likely(rows)))
    readers = {softmax.input: softmax for softmax in softmaxes.values()}
    checks = [
        check_output(
            name, value, theirs[name], allowed.get(name, tolerance), softmax=readers.get(name)
        )
        for name, value in ours.items()
    ]
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
    to the softmax are also compared with the largest of their own.
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
    likely = _likely(softmax.rows(want.astype(np.float64)))
    ours, theirs = (np.where(likely, softmax.rows(array), 0.0) for array in (ours, theirs))
    return max(check, _checked(name, ours, theirs, tolerance), key=attrgetter("error"))


def _check_logits(
    name: str, softmax: FinalSoftmax, probabilities: Array, logits: Array, tolerance: float
) -> OutputCheck:
    """Compare log(p) with the reference's logits where p is accurate, each minus its row mean.

    Where p should be accurate is what the reference's logits tell.
    """
    label = f"log({name})"
    if probabilities.size != logits.size:
        return OutputCheck(label, np.inf, np.nan, tolerance, "the number of elements differs")
    ours = softmax.rows(probabilities.astype(np.float64).reshape(logits.shape))
    theirs = softmax.rows(logits.astype(np.float64))
    usable = _likely(theirs)
    if (usable.sum(axis=1) < np.minimum(2, np.isfinite(theirs).sum(axis=1))).any():
        problem = "the softmax is saturated and hides its input; verify the .onnx file instead"
        return OutputCheck(label, np.inf, _largest(theirs, np.isfinite(theirs)), tolerance, problem)
    logs = np.log(np.maximum(ours, np.finfo(np.float32).smallest_subnormal))
    return _checked(label, _centred(logs, usable), _centred(theirs, usable), tolerance)


def _likely(logits: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Where the probabilities of rows of *logits* are not below the least."""
    with np.errstate(divide="ignore", invalid="ignore"):  # rows without finite logits
        below = logits - logits.max(axis=1, keepdims=True, initial=-np.inf)
        logs = below - np.log(np.exp(below).sum(axis=1, keepdims=True))
    return np.asarray(logs > np.log(LEAST_PROBABILITY))


def _centred(rows: NDArray[np.float64], usable: NDArray[np.bool_]) -> NDArray[np.float64]:
    mean = rows.mean(axis=1, keepdims=True, where=usable)
    return np.where(usable, rows - mean, 0.0)


def _largest(array: NDArray[np.float64], where: NDArray[np.bool_]) -> float:
    """The largest magnitude of the elements *where* that holds."""
    return float(np.abs(array).max(initial=0.0, where=where))


def _checked(
    name: str, ours: NDArray[np.float64], theirs: NDArray[np.float64], tolerance: float
) -> OutputCheck:
    largest = float(np.abs(theirs).max(initial=0.0))
    difference = float(np.abs(ours - theirs).max(initial=0.0))
    error = difference / largest if largest > 0 else difference
    return OutputCheck(name, error, largest, tolerance)
