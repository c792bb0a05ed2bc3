"""Evolution: what its first generation begins with."""

from __future__ import annotations

from collections import defaultdict

from ansorpy.arrays import Floats
from ansorpy.cost.programs import Programs
from ansorpy.ir.task import Task
from ansorpy.schedule.space import Space, Table
from ansorpy.search.strategies.evolution import Evolution
from tests.search.asking import BowlModel, context, ok


class Noting(BowlModel):
    """Notes the rows that it scores, by the object of their space."""

    def __init__(self) -> None:
        super().__init__()
        self.scored: dict[int, list[Table]] = defaultdict(list)

    def predict(self, task: Task, programs: Programs) -> Floats:
        self.scored[id(programs.space)].append(programs.table)
        return super().predict(task, programs)

    def has_scored(self, space: Space, row: Table) -> bool:
        return any((table == row).all(axis=1).any() for table in self.scored[id(space)])


def test_the_first_generation_has_the_measured_rows_though_their_sketches_are_neighbours() -> None:
    model = Noting()
    at = context(model=model)
    told = at.shuffled(at.samples(12, 36))
    sketches = {c.sketch.key: c.sketch for c in told}
    moved = [sketch.neighbour(at.rng) for sketch in sketches.values()]
    assert any(sketch is not None and sketch.key in sketches for sketch in moved)
    strategy = Evolution(sketches=2 * len(sketches), population=320, generations=0)
    strategy.tell([(c, ok(1.0)) for c in told])
    at.note(told)
    strategy.ask(at, 8)
    assert all(model.has_scored(c.sketch.space, c.row) for c in told)
