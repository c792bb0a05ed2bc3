"""A strategy that decides everything before it measures anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ansorpy.arrays import Floats
from ansorpy.cost.programs import Beginning, Programs
from ansorpy.cost.protocol import CostModel, StaticModel, Uncertain, Valuing, predictions
from ansorpy.ir.task import Task
from ansorpy.search.population import Candidate, Pool
from ansorpy.search.strategies.annealing import Annealing
from ansorpy.search.strategy import Context, Strategy

__all__ = ["Frozen", "OneShot"]


@dataclass(frozen=True)
class Frozen(StaticModel):
    """Scores as ``model`` does, and passes no measurement on to it."""

    model: CostModel

    def predict(self, task: Task, programs: Programs) -> Floats:
        return self.model.predict(task, programs)

    def predict_all(self, task: Task, tables: Sequence[Programs]) -> list[Floats]:
        return predictions(self.model, task, tables)

    def deviations(self, task: Task, programs: Programs) -> Floats | None:
        model = self.model
        return model.deviations(task, programs) if isinstance(model, Uncertain) else None

    def values(self, task: Task, beginnings: Sequence[Beginning]) -> Floats | None:
        model = self.model
        return model.values(task, beginnings) if isinstance(model, Valuing) else None


@dataclass
class OneShot(Strategy):
    """Searches once with a model that is not trained any more, and offers its best candidates.

    The task ends when these are measured.  All learning happens before: give a trained model
    (``--cost-model``); without one, the model's untrained scores decide.

    Paper: One-Shot Tuner, CC 2022.  Source: ryujaehun/one-shot-tuner: simulated annealing with 512
    chains, then the best 32.  Differs: any model and any strategy can be used; the chains take 20
    steps instead of 160, all of them in about a second.

    A run that is resumed trains the model on its earlier trials, and measures as many again.

    Args:
        measured: Number of candidates that are measured.
        search: Finds them.
    """

    measured: int = 32
    search: Strategy = field(default_factory=lambda: Annealing(chains=512, steps=20))
    _found: tuple[Candidate, ...] | None = field(default=None, repr=False)

    def ask(self, context: Context, n: int) -> Pool:
        if self._found is None:
            # The search trains the model that the context has.
            context.model = Frozen(context.model)
            self._found = self.search.ask(context, self.measured).best[: self.measured]
        return Pool(tuple(context.new(self._found)))
