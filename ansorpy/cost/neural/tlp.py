"""TLP: primitives as tokens, through attention, summed over each schedule, then ranked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ansorpy.arrays import Floats
from ansorpy.cost.neural.blocks import attention, dense, residual
from ansorpy.cost.neural.network import NetworkModel
from ansorpy.cost.neural.tokens import KINDS, NUMBERS, tokens
from ansorpy.cost.neural.training import Batch, Fitting
from ansorpy.cost.programs import Programs
from ansorpy.ir.task import Task

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["TLP"]


@dataclass
class TLP(NetworkModel):
    """The primitives of a schedule as tokens, which needs no lowering (TLP).

    Paper: ASPLOS'23.  Source: TLP's code.  Differs: the numbers of primitives are logarithms; each
    dense layer is a quarter as wide, since a search waits for the training; schedules are neither
    cropped nor filled up to a length.
    """

    fitting: Fitting = Fitting(examples=2560)
    hidden: int = 64
    attention_heads: int = 8
    blocks: int = 2

    @property
    def version(self) -> str:
        return "tokens-1"

    @property
    def width(self) -> int:
        return KINDS + NUMBERS

    def encode(self, task: Task, programs: Programs) -> Floats:
        return tokens(programs)

    def layers(self) -> nn.ModuleDict:
        from torch import nn

        n = self.hidden
        return nn.ModuleDict(
            {
                "token": dense(self.width, n // 4, n // 2, n, n),
                "attention": nn.MultiheadAttention(n, self.attention_heads, batch_first=True),
                "blocks": nn.ModuleList(dense(n, n) for _ in range(self.blocks)),
                "heads": nn.ModuleList(
                    nn.Sequential(dense(n, n, n // 2, n // 4), nn.Linear(n // 4, 1))
                    for _ in range(self.heads)
                ),
            }
        )

    def forward(self, net: nn.ModuleDict, batch: Batch) -> Tensor:
        """The output of each program's head."""
        x = attention(net["attention"], net["token"](batch.rows), batch.real)
        x = residual(net["blocks"], x)
        found = x.new_zeros(len(x))
        for head in batch.heads.unique().tolist():
            own = batch.heads == head
            scores = net["heads"][head](x[own])[..., 0]
            found[own] = (scores * batch.real[own]).sum(1)
        return found
