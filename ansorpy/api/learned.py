"""Training a cost model on all trials of a database, as a start for other searches."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ansorpy.cost.dataset import TaskSamples
from ansorpy.cost.holdout import Judged, Knowing, common_level, judge
from ansorpy.cost.saved import SavedModel
from ansorpy.errors import UsageError
from ansorpy.measure.database import Database
from ansorpy.measure.probe.calibrate import calibrated
from ansorpy.search.learnt import family, learnt_trials
from ansorpy.target import Target

__all__ = ["Learned", "learned"]


@dataclass(frozen=True)
class Learned:
    """A trained model, and how well such models rank programs they have not seen.

    ``failed`` counts the training programs that did not run; ``held_out`` is empty when no task
    has enough trials to hold some out.
    """

    model: SavedModel
    failed: int
    held_out: tuple[Judged, ...]

    def save(self, path: Path) -> None:
        """Write the model to *path*; raises :class:`UsageError` when that fails."""
        try:
            path.write_text(self.model.text())
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror or error}") from None


def learned(database: Database, target: Target | None = None) -> Learned:
    """Train on every trial in *database* from machines like *target* (default: this one).

    Raises:
        UsageError: There are too few trials to learn from.
    """
    target = calibrated(target or Target.host())
    model = learnt_trials(database, target)
    tasks = model.data.tasks
    model.refit()
    saved = SavedModel.of(model, target.family)
    if not saved.programs or not saved.is_trained:
        others = sorted({family(row) for row in database.tasks()} - {target.family, ""})
        raise UsageError(
            f"{database.path} has {saved.programs} trials for {target.family}, too few to learn "
            f"from (at least {model.options.min_programs})",
            hint=f"it has trials for {', '.join(others)}: name such a target with --target"
            if others
            else "tune something first",
        )
    failed = sum(int(np.isinf(samples.seconds).sum()) for samples in tasks.values())
    named = _named(database, tasks)
    shown = (Knowing.NOTHING, Knowing.OTHERS, Knowing.LOADED)
    return Learned(saved, failed, tuple(judge(named, (common_level(named),), models=shown)))


def _named(database: Database, tasks: dict[str, TaskSamples]) -> dict[str, TaskSamples]:
    """*tasks* in order, by names that distinguish them."""
    rows = {row.key: row for row in database.tasks()}
    return {f"{rows[key].name} {key[:6]}": samples for key, samples in tasks.items()}
