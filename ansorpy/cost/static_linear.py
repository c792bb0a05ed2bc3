"""The static linear model: a weighted sum of what a program's loops cost a CPU."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from ansorpy.arrays import Floats
from ansorpy.cost.analytic.cpu.machine import MachineModel
from ansorpy.cost.analytic.cpu.model import TERMS, leaf_cost
from ansorpy.cost.analytic.model import PRIOR_VERSION
from ansorpy.cost.nest_view import view_nest
from ansorpy.cost.programs import Programs
from ansorpy.cost.protocol import StaticModel
from ansorpy.errors import ForeignFile, UsageError
from ansorpy.ir.task import Task

__all__ = ["StaticLinear", "fitted_weights", "static_terms"]

_FORMAT: Literal["ansorpy-static-linear"] = "ansorpy-static-linear"
_AGAIN = "fit them again: ansorpy dataset train DATA --cost-model static_linear -o weights.json"


@dataclass(frozen=True)
class StaticLinear(StaticModel):
    """Scores programs by a weighted sum of static features; learns nothing while it searches.

    The features are the seconds that each of the analytic model's
    :data:`~ansorpy.cost.analytic.cpu.model.TERMS` would take alone.  The weights are fitted once
    for a kind of machine (``ansorpy dataset train``) and kept in a file that ``--cost-model``
    accepts.  Without a file they are 1, as if nothing overlapped.

    Paper: Tuna (Wang et al., arXiv 2104.14641).  There is no public code, so the list of features
    is ours.  Differs: they are computed from the loop nest for a whole population at once, without
    the assembly, which would take milliseconds of a compiler's time for each program.

    Args:
        weights: Of each term.
        family: :attr:`~ansorpy.target.Target.family` of the machines they were fitted for; empty
            for any.
    """

    weights: tuple[float, ...] = (1.0,) * len(TERMS)
    family: str = ""

    def predict(self, task: Task, programs: Programs) -> Floats:
        """Score of each program: programs per second.

        Raises:
            UsageError: The task is not for a CPU, or not for the machines of the weights.
        """
        if self.family not in ("", task.target.family):
            raise UsageError(
                f"the weights of static_linear were fitted for {self.family}, "
                f"not for {task.target.family}",
                hint=_AGAIN,
            )
        seconds = static_terms(task, programs) @ np.asarray(self.weights)
        score: Floats = 1.0 / np.maximum(seconds, np.finfo(np.float64).tiny)
        return score

    def text(self) -> str:
        """The content of its file, which :meth:`read` reads."""
        weights = dict(zip(TERMS, self.weights, strict=True))
        return _File(family=self.family, weights=weights).model_dump_json(indent=1) + "\n"

    @staticmethod
    def read(path: Path) -> StaticLinear | None:
        """The model whose :meth:`text` is in the file *path*; None for files of another kind.

        Raises:
            ForeignFile: Its weights are not those of this version's features.
        """
        try:
            values = json.loads(path.read_bytes())
        except (OSError, RecursionError, ValueError):
            return None
        if not isinstance(values, dict) or values.get("format") != _FORMAT:
            return None
        try:
            file = _File.model_validate(values)
        except ValidationError as error:
            raise ForeignFile(f"{path}: {error.errors()[0]['msg']}", hint=_AGAIN) from None
        if (file.version, tuple(file.weights)) != (PRIOR_VERSION, TERMS):
            raise ForeignFile(
                f"the weights in {path} are for the features of another version", hint=_AGAIN
            )
        return StaticLinear(tuple(file.weights.values()), file.family)


class _File(BaseModel):
    """The weights in the order of the terms, and what they were fitted for."""

    model_config = ConfigDict(extra="forbid")

    format: Literal["ansorpy-static-linear"] = _FORMAT
    version: int = PRIOR_VERSION
    family: str
    weights: dict[str, Annotated[FiniteFloat, Field(ge=0)]]


def static_terms(task: Task, programs: Programs) -> Floats:
    """Seconds of each program's terms, ``[programs, len(TERMS)]``.

    Raises:
        UsageError: The task is not for a CPU.
    """
    if task.target.backend == "cuda":
        raise UsageError(
            "the cost model static_linear has features of CPUs only",
            hint="use the cost model analytic",
        )
    machine = MachineModel.of(task.target)
    total = np.zeros((len(programs), len(TERMS)))
    for view in view_nest(programs.nest, len(programs)):
        cost = leaf_cost(view, machine, task.threads, task.reuse_distance_bytes)
        total += np.stack([view.spread(term) for term in cost.terms], axis=1)
    return total


def fitted_weights(measured: Sequence[tuple[Floats, Floats]]) -> tuple[float, ...]:
    """The weights that predict best: of each task its programs' terms and their seconds.

    Non-negative least squares of the relative error; programs that failed do not count.
    """
    from scipy.optimize import nnls

    terms = np.concatenate([terms for terms, _ in measured])
    seconds = np.concatenate([seconds for _, seconds in measured])
    timed = np.isfinite(seconds)
    weights, _ = nnls(terms[timed] / seconds[timed, None], np.ones(int(timed.sum())))
    return tuple(float(weight) for weight in weights)
