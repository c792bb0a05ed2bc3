"""Pruner: the closed form drafts, and a network looks only at the best of the draft."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.cost.bound import least_seconds
from ansorpy.cost.features import FEATURE_NAMES
from ansorpy.cost.features.buffers import MAX_BUFFERS
from ansorpy.cost.neural.blocks import attention, dense, residual
from ansorpy.cost.neural.network import SLOWEST
from ansorpy.cost.neural.statements import StatementNetwork
from ansorpy.cost.neural.training import Batch, Fitting
from ansorpy.cost.programs import Programs
from ansorpy.ir.task import Task

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["Pruner"]

_MOVED = [
    [at for at, name in enumerate(FEATURE_NAMES) if name.startswith(f"B{buffer}.")]
    for buffer in range(MAX_BUFFERS)
]
"""The columns of each buffer that a statement moves data of."""

_ALIKE = [
    FEATURE_NAMES.index(name)
    for name in ("outer_prod", "alloc_size", "alloc_prod", "alloc_outer_prod", "alloc_inner_prod")
]
"""The columns of the statement that each of its moves has too."""


_AT_LEAST = 16
"""Programs that the network scores in every call, if there are as many."""

_SHORTEST_S = 1e-12
"""A positive bound for tasks without one: multiplied by 0, all of a draft would score the same."""


@dataclass
class Pruner(StatementNetwork):
    """The closed form drafts; a network of statements and data movement verifies the best (Pruner).

    Of the programs that are scored together, those that the analytic model likes best are scored
    by the network; the others follow in the analytic model's order, slower than what the network
    takes for the slowest (:data:`~ansorpy.cost.neural.network.SLOWEST`).
    Paper: ASPLOS'25.  Source: the draft-then-verify search and the PaCM network of Pruner's code.
    Differs: the draft is the analytic model, which is a closed form of the loops and the machine
    like Pruner's symbol-based analyser, but knows caches and ports; every scoring drafts and
    verifies, where Pruner drafts for two generations of evolution and verifies for one, so any
    strategy can use it.  A move of data is a buffer of a statement, in the order of the program,
    where Pruner matches eight moves between a GPU's memories.
    """

    fitting: Fitting = Fitting(examples=2048)
    verified: float = 0.25
    """Share of programs that the network scores; Pruner's search has it score 3,000 of 10,240."""
    hidden: int = 256
    moves: int = 128
    """Width of the branch of data movement."""
    attention_heads: int = 4
    blocks: int = 2
    calls: int = field(default=0, init=False, repr=False)
    """Number of programs that the network has scored."""
    _least_s: dict[str, float] = field(default_factory=dict, init=False, repr=False)
    """The least seconds that a program of each task can take, at least :data:`_SHORTEST_S`."""

    def predict(self, task: Task, programs: Programs) -> Floats:
        """The analytic model's order, but the best *verified* of it reordered by the network."""
        [scores] = self.predict_all(task, [programs])
        return scores

    def predict_all(self, task: Task, tables: Sequence[Programs]) -> list[Floats]:
        """The scores of :meth:`predict` for several sketches, which are drafted together."""
        drafts = [self.untrained(task, programs) for programs in tables]
        ends = np.cumsum([len(draft) for draft in drafts])
        if not self.is_trained or not len(ends) or not ends[-1]:
            return drafts
        draft = np.concatenate(drafts)
        wanted = max(round(self.verified * len(draft)), _AT_LEAST)
        best = np.argsort(-draft, kind="stable")[:wanted]
        verified = np.zeros(len(draft), dtype=np.bool_)
        verified[best] = True
        features: list[Floats] = []
        for programs, mine in zip(tables, np.split(verified, ends[:-1]), strict=True):
            if mine.any():
                chosen = Programs(programs.space, programs.table[mine])
                features += list(self.encode(task, chosen))
        if task.key not in self._least_s:
            self._least_s[task.key] = max(least_seconds(task, task.dag), _SHORTEST_S)
        # A scale that is the same in every call: strategies compare scores of different calls.
        # A definition of fewer operations than the task's may be drafted beyond its bound, but
        # all stay below the verified ones.
        relative = self._least_s[task.key] * draft
        scores = SLOWEST * relative / (1.0 + relative)
        scores[verified] = SLOWEST + self.score(features, task.key)
        self.calls += len(best)
        return np.split(scores, ends[:-1])

    def layers(self) -> nn.ModuleDict:
        from torch import nn

        n, m = self.hidden, self.moves
        return nn.ModuleDict(
            {
                "statement": dense(self.width, n, n),
                "move": dense(len(_MOVED[0]) + len(_ALIKE), m // 2, m),
                "attention": nn.MultiheadAttention(m, self.attention_heads, batch_first=True),
                "both": nn.Sequential(nn.Linear(n + m, n), nn.LayerNorm(n)),
                "program": nn.ModuleList(dense(n, n) for _ in range(self.blocks)),
                "out": nn.Linear(n, 1),
            }
        )

    def forward(self, net: nn.ModuleDict, batch: Batch) -> Tensor:
        import torch

        rows, real = batch.rows, batch.real
        statements = (net["statement"](rows) * real[..., None]).sum(1)
        steps = [torch.cat([rows[..., moved], rows[..., _ALIKE]], -1) for moved in _MOVED]
        moves = torch.stack(steps, 2).flatten(1, 2)
        raw = torch.stack([batch.raw[..., moved] for moved in _MOVED], 2)
        is_move = (raw != 0).any(-1).flatten(1)
        moved = attention(net["attention"], net["move"](moves), is_move) * is_move[..., None]
        both = net["both"](torch.cat([statements, moved.sum(1)], -1))
        return net["out"](residual(net["program"], both))[:, 0]
