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
from ansorpy.cost.neural.training import Batch, Examples
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
    is the best of all measured programs that begin so.

    Paper: "Value Learning for Throughput Optimization of Deep Learning Workloads", MLSys 2021.  No
    code is public: sizes are ours.  Differs: decisions are one number each, where the paper
    schedules a stage at once; programs found by the search take the place of beam searches that
    complete beginnings for training; labels are throughputs relative to the task's best.
    """

    loss: Loss = "squared"
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
        alike: dict[tuple[int, int], list[int]] = {}
        for number, each in enumerate(beginnings):
            alike.setdefault((id(each.space), len(each.row)), []).append(number)
        features: dict[int, Floats] = {}
        for numbers in alike.values():
            table = np.stack([beginnings[n].row for n in numbers])
            found = _decisions(beginnings[numbers[0]].space, table)
            features.update(zip(numbers, found, strict=True))
        return self.score([features[n] for n in range(len(beginnings))], task.key)

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
            for part, found, head in zip(whole.features[own], best, whole.heads[own], strict=True):
                for length in rng.integers(1, len(part) + 1, self.beginnings).tolist():
                    features.append(part[:length])
                    labels.append(found[length - 1])
                    heads.append(head)
            first = own.stop
        return Examples(features, np.array(labels), np.array(heads, dtype=np.int64))


def _best_labels(features: Sequence[Floats], labels: Floats) -> list[Floats]:
    """For each program and each row, the best label of the programs that are equal so far."""
    known: dict[tuple[int, bytes], int] = {}
    paths = []
    for part in features:
        node, path = -1, []
        for row in part:
            node = known.setdefault((node, row.tobytes()), len(known))
            path.append(node)
        paths.append(path)
    best: Floats = np.zeros(len(known))
    for path, label in zip(paths, labels.tolist(), strict=True):
        best[path] = np.maximum(best[path], label)
    return [best[path] for path in paths]


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
