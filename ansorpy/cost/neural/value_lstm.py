"""The value of an unfinished program: the speed of the best program that begins like it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.cost.neural.blocks import dense
from ansorpy.cost.neural.losses import Loss
from ansorpy.cost.neural.network import NetworkModel
from ansorpy.cost.neural.tokens import KINDS, NUMBERS, tokens
from ansorpy.cost.neural.training import Batch, Examples, Fitting
from ansorpy.cost.programs import Beginning, Programs
from ansorpy.ir.task import Task
from ansorpy.schedule.space import Space, Table

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["ValueLSTM"]


@dataclass
class ValueLSTM(NetworkModel):
    """An LSTM over the decisions of a program, which also scores beginnings (Value Learning).

    It reads the steps of the placed sketch and then one number after another.  A beginning's label
    is the best of all measured programs that begin so, and only rises as more are measured.

    Paper: "Value Learning for Throughput Optimization of Deep Learning Workloads", MLSys 2021.  No
    code is public: sizes are ours.  Differs: decisions are one number each, where the paper
    schedules a stage at once; programs found by the search take the place of beam searches that
    complete beginnings for training; labels are throughputs relative to the task's best.
    """

    loss: Loss = "squared"
    fitting: Fitting = Fitting(rate=3e-3)
    hidden: int = 96
    beginnings: int = 3
    """Beginnings of each measured program that an epoch trains on, besides the program."""

    @property
    def version(self) -> str:
        return "decisions-1"

    @property
    def width(self) -> int:
        return KINDS + NUMBERS

    def encode(self, task: Task, programs: Programs) -> Floats:
        return _decisions(programs.space, programs.table)

    def values(self, task: Task, beginnings: Sequence[Beginning]) -> Floats | None:
        """Scores of the best programs that begin so; None before training."""
        if not self.is_trained:
            return None
        features = [_decisions(b.space, b.row[None])[0] for b in beginnings]
        return self.score(features, task.key)

    def layers(self) -> nn.ModuleDict:
        from torch import nn

        n = self.hidden
        return nn.ModuleDict(
            {
                "token": dense(self.width, n),
                "sequence": nn.LSTM(n, n, batch_first=True),
                "value": nn.Sequential(dense(n, n), nn.Linear(n, 1)),
            }
        )

    def forward(self, net: nn.ModuleDict, batch: Batch) -> Tensor:
        """The output after each program's last row."""
        import torch

        read, _ = net["sequence"](net["token"](batch.rows))
        last = batch.real.sum(1) - 1
        value: Tensor = net["value"](read[torch.arange(len(last)), last])[:, 0]
        return value

    def _examples(self) -> Examples:
        """The programs, and some random beginnings of each."""
        whole = super()._examples()
        rng = np.random.default_rng(self._trained_on)
        features, labels, heads = list(whole.features), list(whole.labels), list(whole.heads)
        first = 0
        for samples in self.data.tasks.values():
            own = slice(first, first + len(samples.seconds))
            best = _best_labels(whole.features[own], whole.labels[own])
            for part, head in zip(whole.features[own], whole.heads[own], strict=True):
                for length in rng.integers(1, len(part) + 1, self.beginnings).tolist():
                    features.append(part[:length])
                    labels.append(best[part[:length].tobytes()])
                    heads.append(head)
            first = own.stop
        return Examples(features, np.array(labels), np.array(heads, dtype=np.int64))


def _best_labels(features: Sequence[Floats], labels: Floats) -> dict[bytes, float]:
    """The best label of the programs with each beginning."""
    best: dict[bytes, float] = {}
    for part, label in zip(features, labels.tolist(), strict=True):
        for length in range(1, len(part) + 1):
            key = part[:length].tobytes()
            best[key] = max(best.get(key, 0.0), label)
    return best


def _decisions(space: Space, table: Table) -> Floats:
    """Rows for the steps, whose open numbers are 0, and for the columns that *table* has.

    A column's row has the last kind, its place, and ``log2(1 + x)`` of its number and of the
    largest one that it may be.
    """
    columns = table.shape[1]
    steps = tokens(Programs(space, np.zeros((1, len(space.columns)), dtype=np.int64)))[0]
    found = np.zeros((len(table), len(steps) + columns, steps.shape[1]))
    found[:, : len(steps)] = steps
    numbers = found[:, len(steps) :]
    most = [rows.max(axis=0) for rows in space.domains]
    numbers[:, :, KINDS - 1] = 1
    numbers[:, :, KINDS] = np.arange(1, columns + 1)
    numbers[:, :, KINDS + 1] = np.log2(1.0 + np.maximum(table, 0))
    if columns:
        numbers[:, :, KINDS + 2] = np.log2(1.0 + np.maximum(np.concatenate(most)[:columns], 0))
    return found
