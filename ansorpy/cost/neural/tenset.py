"""TenSet's network: statements through dense layers, summed over each program, then ranked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ansorpy.cost.neural.blocks import dense, residual
from ansorpy.cost.neural.statements import StatementNetwork
from ansorpy.cost.neural.training import Batch

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["TenSet"]


@dataclass
class TenSet(StatementNetwork):
    """Each statement through dense layers, summed over a program, trained to rank (TenSet).

    Paper: NeurIPS'21 (Datasets and Benchmarks).  Source: the segment-sum network of TenSet's code.
    Differs: no tags of the kind of operator; with a search, training goes on from the last weights.
    """

    hidden: int = 256
    blocks: int = 2

    def layers(self) -> nn.ModuleDict:
        from torch import nn

        n = self.hidden
        return nn.ModuleDict(
            {
                "statement": dense(self.width, n, n),
                "program": nn.ModuleList(dense(n, n) for _ in range(self.blocks)),
                "out": nn.Linear(n, 1),
            }
        )

    def forward(self, net: nn.ModuleDict, batch: Batch) -> Tensor:
        statements = net["statement"](batch.rows) * batch.real[..., None]
        return net["out"](residual(net["program"], statements.sum(1)))[:, 0]
