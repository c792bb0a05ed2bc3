"""The replaceable parts of a search: their registries, a choice of each, and plugin scripts."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, TypedDict

from ansorpy.cost.models import MODELS
from ansorpy.cost.protocol import CostModel
from ansorpy.cost.saved import SavedModel
from ansorpy.errors import AnsorpyError, UsageError
from ansorpy.measure.policies import POLICIES
from ansorpy.measure.timing import TimingPolicy
from ansorpy.registry import Choice, Registry
from ansorpy.search.driver import SearchOptions
from ansorpy.search.selector import Selector
from ansorpy.search.selectors import SELECTORS
from ansorpy.search.strategies import STRATEGIES
from ansorpy.search.strategy import Strategy
from ansorpy.search.transfer import TransferSource
from ansorpy.search.transfers import TRANSFERS
from ansorpy.tasks.objectives import OBJECTIVES
from ansorpy.tasks.scheduler import TaskScheduler
from ansorpy.tasks.schedulers import SCHEDULERS
from ansorpy.tasks.tune import TuneOptions

__all__ = ["PARTS", "PartOptions", "Parts", "load_plugin"]

PARTS: Mapping[str, Registry[Any]] = {
    "strategy": STRATEGIES,
    "selector": SELECTORS,
    "cost_model": MODELS,
    "scheduler": SCHEDULERS,
    "objective": OBJECTIVES,
    "transfer": TRANSFERS,
    "measure": POLICIES,
}
"""The registries by the parameter that chooses from each; scripts register their parts here."""


class PartOptions(TypedDict, total=False):
    """The keyword arguments of :func:`ansorpy.tune` and :func:`ansorpy.compile` that choose parts.

    :class:`Parts` has their meaning and defaults.
    """

    strategy: Choice[Strategy]
    selector: Choice[Selector]
    cost_model: Choice[CostModel] | Path
    scheduler: Choice[TaskScheduler]
    transfer: Choice[TransferSource]
    measure: Choice[TimingPolicy]


@dataclass(frozen=True)
class Parts:
    """One choice of each kind: a name, a part, or a factory (such as a class).

    Args:
        strategy: Proposes candidates.  A part given as an object is copied for each task.
        selector: Picks the candidates to measure.
        cost_model: Ranks candidates without running them; all tasks share it.  A path names the
            file of a trained model (``ansorpy db model``), which continues to learn.
        scheduler: Decides which task gets the next round.
        transfer: Decides what to reuse from earlier trials, of the same task and of others.
        measure: Decides how long each candidate is timed.

    Raises:
        UsageError: An unknown name.
        ForeignFile: A file that is not a cost model of this version.
    """

    strategy: Choice[Strategy] = "evolution"
    selector: Choice[Selector] = "epsilon_greedy"
    cost_model: Choice[CostModel] | Path = "boosted"
    scheduler: Choice[TaskScheduler] = "gradient"
    transfer: Choice[TransferSource] = "both"
    measure: Choice[TimingPolicy] = "fixed"

    @classmethod
    def of(cls, choices: PartOptions) -> Parts:
        """The parts that a call's keyword arguments choose.

        Raises:
            UsageError: There is no such kind of part, or the name is unknown.
        """
        known = [field.name for field in fields(cls)]
        unknown = [name for name in choices if name not in known]
        if unknown:
            raise UsageError(
                f'there is no option "{unknown[0]}"',
                hint=f"what can be exchanged: {', '.join(known)}",
            )
        return cls(**choices)

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name != "cost_model":
                PARTS[field.name].factory(getattr(self, field.name))
        _ = self.model  # a wrong file is refused before anything starts

    @cached_property
    def model(self) -> Callable[[], CostModel]:
        """The factory of the cost model."""
        choice = self.cost_model
        if isinstance(choice, SavedModel):
            return choice
        if isinstance(choice, str) and choice not in MODELS:
            return _named_file(choice)
        return SavedModel.read(choice) if isinstance(choice, Path) else MODELS.shared(choice)

    def tuning(self, seed: int) -> TuneOptions:
        """The options of a tuning run that uses these parts."""
        search = SearchOptions(
            strategy=STRATEGIES.factory(self.strategy),
            selector=SELECTORS.one(self.selector),
            transfer=TRANSFERS.one(self.transfer),
            seed=seed,
        )
        return TuneOptions(
            search=search,
            scheduler=SCHEDULERS.one(self.scheduler),
            model=self.model,
        )

    def policy(self) -> TimingPolicy:
        """The policy by which candidates are timed."""
        return POLICIES.one(self.measure)


def _named_file(name: str) -> SavedModel:
    """The trained model in the file *name*, which is not a registered name."""
    if not Path(name).is_file():
        raise UsageError(
            f'unknown cost model "{name}"',
            hint=f"known are {', '.join(MODELS)}, files that ansorpy db model wrote, and what a "
            "script of your own registers",
        )
    return SavedModel.read(Path(name))


def load_plugin(path: str | Path) -> None:
    """Run a script that registers its own parts in :data:`PARTS`.

    Raises:
        UsageError: There is no such file, or the script fails.
    """
    path = Path(path)
    spec = spec_from_file_location(f"ansorpy_plugin_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise UsageError(f"there is no plugin {path}", hint="name a Python file: --plugin mine.py")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
    except AnsorpyError:
        raise
    except Exception as error:
        raise UsageError(f"the plugin {path} failed: {_where(error, path)}") from error


def _where(error: Exception, path: Path) -> str:
    """The error in one line, with the number of the plugin's line that raised it."""
    text = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f.lineno for f in frames if Path(f.filename) == path.absolute()]
    return f"line {lines[-1]}: {text}" if lines else text
