"""MTL-TLP: TLP with one head for each machine, so that all machines' records help."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ansorpy.cost.neural.tlp import TLP
from ansorpy.cost.neural.training import Examples

__all__ = ["MultiTaskTLP"]


@dataclass
class MultiTaskTLP(TLP):
    """TLP with a head for each machine, which all train one trunk (MTL-TLP).

    Paper: ASPLOS'23.  Source: TLP's code.  The loss is the sum of the heads' losses, each of the
    programs measured on its machine.  A machine without programs is scored, and begins to learn, as
    the one with the most.
    """

    machines: int = 4
    """Number of heads; the first training leaves one free, which all further targets share."""

    @property
    def heads(self) -> int:
        return self.machines

    def head(self, task_key: str) -> int:
        """The head of the task's target; that of a new one is free, or the last one."""
        target = task_key.split("/")[1]
        known = target in self.targets
        return min(self.targets.index(target) if known else len(self.targets), self.machines - 1)

    def _examples(self) -> Examples:
        """All examples; targets get heads in the order in which they occur."""
        found = dict.fromkeys([*self.targets, *(key.split("/")[1] for key in self.data.tasks)])
        self.targets = list(found)
        if self._net is None:
            self.machines = max(self.machines, len(self.targets) + 1)
        return super()._examples()

    def _train(self, examples: Examples) -> None:
        """Train the heads of *examples*; free ones become copies of the one with the most."""
        super()._train(examples)
        assert self._net is not None
        heads = self._net["heads"]
        most = heads[int(np.bincount(examples.heads).argmax())].state_dict()
        for free in heads[len(self.targets) :]:
            free.load_state_dict(most)
