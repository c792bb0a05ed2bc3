"""Halide's way: a network weighs the terms of a hand-made model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.cost.analytic.hardware import CAUSES, hardware_of
from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.dataset import TaskSamples
from ansorpy.cost.learner import COLUMNS, SAMPLE_VERSION, statement_rows
from ansorpy.cost.nest_view import view_nest
from ansorpy.cost.neural.blocks import dense
from ansorpy.cost.neural.losses import Loss
from ansorpy.cost.neural.network import NetworkModel
from ansorpy.cost.neural.training import Batch, Fitting
from ansorpy.cost.programs import Programs
from ansorpy.ir.task import Task

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["Halide"]

_CAUSES = slice(0, CAUSES)
_FEATURES = slice(CAUSES, CAUSES + len(COLUMNS))

_UNIT_S = 1e-9
"""Terms are stored in this unit, as numbers in single precision."""


@dataclass
class Halide(NetworkModel):
    """A small network predicts coefficients of the analytic model's terms (Halide).

    A program's time is the sum, over statements and causes (arithmetic, each level of memory, forks
    or launches), of the closed form's seconds times a positive coefficient that depends on the
    features of the statement and of the whole program.
    Paper: SIGGRAPH'19.  Source: Halide's adams2019 autoscheduler.  Differs: terms are those of
    the analytic model, whose coefficients would all be 1, and coefficients begin near that; the
    loss is the relative error of throughput.
    """

    loss: Loss = "relative"
    fitting: Fitting = Fitting(examples=8192)
    hidden: int = 32

    @property
    def version(self) -> str:
        return f"causes-{SAMPLE_VERSION}"

    @property
    def width(self) -> int:
        return _FEATURES.stop

    def encode(self, task: Task, programs: Programs) -> Floats:
        views = view_nest(programs.nest, len(programs))
        _, features = statement_rows(task, views)
        found = np.zeros((*features.shape[:2], self.width))
        causes = hardware_of(task.target).causes(task, views) / _UNIT_S
        found[..., : causes.shape[-1]] = causes
        found[..., _FEATURES] = features
        return found

    def untrained(self, task: Task, programs: Programs) -> Floats:
        """The analytic model's scores."""
        return AnalyticModel().predict(task, programs)

    def labels(self, samples: TaskSamples) -> Floats:
        """Programs per unit of time; 0 for failures."""
        found: Floats = _UNIT_S / np.asarray(samples.seconds)
        return found

    def layers(self) -> nn.ModuleDict:
        from torch import nn

        n = self.hidden
        out = nn.Linear(n, CAUSES)
        nn.init.zeros_(out.weight)
        nn.init.zeros_(out.bias)
        return nn.ModuleDict(
            {
                "statement": dense(_FEATURES.stop - _FEATURES.start, n),
                "both": dense(2 * n, n),
                "coefficients": out,
            }
        )

    def forward(self, net: nn.ModuleDict, batch: Batch) -> Tensor:
        """The logarithm of each program's predicted throughput."""
        import torch

        statements = net["statement"](batch.rows[..., _FEATURES]) * batch.real[..., None]
        program = statements.sum(1, keepdim=True).expand_as(statements)
        both = net["both"](torch.cat([statements, program], -1))
        coefficients = net["coefficients"](both).exp()
        terms = batch.raw[..., _CAUSES]
        return -(coefficients * terms).sum((1, 2)).clamp(min=1e-6).log()
