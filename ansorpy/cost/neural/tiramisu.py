"""Tiramisu's recursive network: loops are embedded from what is inside them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.dataset import TaskSamples
from ansorpy.cost.features import FEATURE_VERSION
from ansorpy.cost.nest_view import view_nest
from ansorpy.cost.neural.loop_tree import (
    LOOP,
    STATEMENT,
    WIDTH,
    Node,
    tree_of,
    tree_rows,
    unscheduled_s,
)
from ansorpy.cost.neural.losses import Loss
from ansorpy.cost.neural.network import NetworkModel
from ansorpy.cost.neural.training import Batch, Fitting
from ansorpy.cost.programs import Programs
from ansorpy.ir.task import Task
from ansorpy.schedule.state import State

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["Tiramisu"]


@dataclass
class Tiramisu(NetworkModel):
    """A recursive network over the loop tree predicts the speed-up by scheduling (Tiramisu).

    A loop's embedding is made of its own columns and of two LSTMs, one over the embeddings of the
    loops in it and one over those of its statements.  The loss is the mean relative error.
    Paper: MLSys'21.  Source: Tiramisu's cost model.  Differs: trees are of the scheduled program,
    as schedules here are not lists of a few transformations, and statements have the features of
    boosted trees.  What is inside a loop is also added to its embedding, as nests are deep.  The
    time of the unscheduled program is the analytic model's, as it may take too long to measure.
    Widths are a third of the source's, as a search waits for the training.
    """

    loss: Loss = "relative"
    fitting: Fitting = Fitting(decay=0.015, examples=1024)
    hidden: int = 60
    dropout: float = 0.05
    _unscheduled: dict[str, float] = field(default_factory=dict, init=False, repr=False)

    @property
    def version(self) -> str:
        return f"trees-1-{FEATURE_VERSION}"

    @property
    def width(self) -> int:
        return WIDTH

    def encode(self, task: Task, programs: Programs) -> Floats:
        views = view_nest(programs.nest, len(programs))
        return tree_rows(views, len(programs), self._unscheduled_s(task))

    def _unscheduled_s(self, task: Task) -> float:
        if task.key not in self._unscheduled:
            [speed] = AnalyticModel().predict(task, Programs.of(State.initial(task.dag)))
            self._unscheduled[task.key] = float(1 / speed)
        return self._unscheduled[task.key]

    def untrained(self, task: Task, programs: Programs) -> Floats:
        """The analytic model's speed-up."""
        return AnalyticModel().predict(task, programs) * self._unscheduled_s(task)

    def labels(self, samples: TaskSamples) -> Floats:
        """The speed-up over the unscheduled program; 0 for failures."""
        if self.loss != "relative":
            return super().labels(samples)
        before = np.array([unscheduled_s(nodes) for nodes in samples.features])
        found: Floats = before / np.asarray(samples.seconds)
        return found

    def layers(self) -> nn.ModuleDict:
        import torch
        from torch import nn

        n = self.hidden
        statement = STATEMENT.stop - STATEMENT.start

        def dense(*widths: int) -> nn.Sequential:
            parts = [
                (nn.Linear(before, after), nn.ELU(), nn.Dropout(self.dropout))
                for before, after in zip(widths, widths[1:], strict=False)
            ]
            return nn.Sequential(*(layer for part in parts for layer in part))

        return nn.ModuleDict(
            {
                "statement": dense(statement, 3 * n, 2 * n, n),
                "loops": nn.LSTM(n, n, batch_first=True),
                "statements": nn.LSTM(n, n, batch_first=True),
                "none": nn.ParameterList([torch.randn(n) * 0.1 for _ in range(2)]),
                "loop": dense(2 * n + LOOP.stop - LOOP.start, n, n),
                "out": nn.Linear(n, 1),
            }
        )

    def forward(self, net: nn.ModuleDict, batch: Batch) -> Tensor:
        """The output for each program; those with equal trees are computed together."""
        found = batch.rows.new_zeros(len(batch.rows))
        for numbers, tree in _by_tree(batch):
            rows = batch.rows[numbers]
            statements = net["statement"](rows[..., STATEMENT])
            program = self._embed(net, tree, rows, statements)
            found[numbers] = net["out"](program)[:, 0]
        return found

    def _embed(self, net: nn.ModuleDict, node: Node, rows: Tensor, statements: Tensor) -> Tensor:
        """The embeddings of one loop in all programs, ``[programs, hidden]``."""
        import torch

        inner = [self._embed(net, loop, rows, statements) for loop in node.loops]
        leaves = [statements[:, row] for row in node.statements]
        parts = [rows[:, node.row, LOOP]]
        for name, none, children in zip(
            ("loops", "statements"), net["none"], (inner, leaves), strict=True
        ):
            if children:
                parts.append(net[name](torch.stack(children, 1))[1][0][0])
            else:
                parts.append(none.expand(len(rows), -1))
        return sum((*inner, *leaves), net["loop"](torch.cat(parts, -1)))


def _by_tree(batch: Batch) -> list[tuple[Tensor, Node]]:
    """The numbers of the programs that have each tree."""
    import torch

    shape = batch.raw[..., :2].numpy()
    groups: dict[bytes, list[int]] = {}
    lengths = batch.real.sum(1).tolist()
    for number, length in enumerate(lengths):
        groups.setdefault(shape[number, :length].tobytes(), []).append(number)
    return [
        (torch.tensor(numbers), tree_of(shape[numbers[0], : lengths[numbers[0]]]))
        for numbers in groups.values()
    ]
