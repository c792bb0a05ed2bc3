"""MTL-TLP: TLP with one head for each machine, so that all machines' records help."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ansorpy.cost.neural.tlp import TLP
from ansorpy.cost.neural.training import Examples
from ansorpy.errors import UsageError

__all__ = ["MultiTaskTLP"]


@dataclass
class MultiTaskTLP(TLP):
    """TLP with a head for each machine, which all train one trunk (MTL-TLP).

    Paper: ASPLOS'23.  Source: TLP's code.  The loss is the sum of the heads' losses, each of the
    programs measured on its machine.  A machine without programs is scored, and begins to learn, as
    the one with the most.
    """

    machines: int = 4
    """Number of heads; at least one is free after the first training."""

    @property
    def heads(self) -> int:
        return self.machines

    def head(self, task_key: str) -> int:
        """The head of the task's target; targets are numbered as they occur."""
        target = task_key.split("/")[1]
        if target not in self.targets:
            if self.is_trained and len(self.targets) == self.machines:
                raise UsageError(
                    f"mtl_tlp has {self.machines} heads, one for each target, and this is one more",
                    hint=f"make it with more: MultiTaskTLP(machines={self.machines + 1})",
                )
            self.targets.append(target)
        return self.targets.index(target)

    def _train(self, examples: Examples) -> None:
        """Train the heads of *examples*; free ones become copies of the one with the most."""
        if self._net is None:
            self.machines = max(self.machines, len(self.targets) + 1)
        super()._train(examples)
        assert self._net is not None
        heads = self._net["heads"]
        most = heads[int(np.bincount(examples.heads).argmax())].state_dict()
        for free in heads[len(self.targets) :]:
            free.load_state_dict(most)
