"""The replaceable parts of a search: registries, and the choice of parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack, cast

from ansorpy.api.arguments import PartArguments
from ansorpy.cost.models import MODELS
from ansorpy.cost.neural.saved import read_network
from ansorpy.cost.pretrained import pretrained_for
from ansorpy.cost.protocol import CostModel
from ansorpy.cost.saved import SavedModel
from ansorpy.cost.static_linear import StaticLinear
from ansorpy.errors import UsageError
from ansorpy.measure.run.policies import POLICIES
from ansorpy.measure.run.timing import TimingPolicy
from ansorpy.options import completed
from ansorpy.registry import Registry
from ansorpy.search.task_search import SearchOptions
from ansorpy.target import Target
from ansorpy.tasks.parts import TUNING_PARTS, with_parts
from ansorpy.tasks.tune import TuneOptions

__all__ = ["PARTS", "Parts"]

PARTS: Mapping[str, Registry[Any]] = {
    **{name: part.registry for name, part in TUNING_PARTS.items()},
    "measure": POLICIES,
}
"""The registries, by the parameter that chooses from each; scripts register their parts here."""


class Parts:
    """The replaceable parts of a search: for each kind a name, a part, or a factory (a class).

    A strategy given as an object is copied for each task; all tasks share the cost model.  A model
    from a file (``ansorpy dataset train``) continues to learn.

    Raises:
        UsageError: There is no such kind of part, or a name is unknown.
        ForeignFile: A file is not a cost model of this version.
    """

    def __init__(self, **choices: Unpack[PartArguments]) -> None:
        self.choices: PartArguments = cast(PartArguments, completed(PartArguments, choices))
        for kind, choice in self.choices.items():
            if kind != "cost_model":
                PARTS[kind].factory(choice)
        _ = self.model  # refuse a wrong file before anything starts

    @cached_property
    def model(self) -> Callable[[], CostModel]:
        """The factory of the cost model."""
        choice = self.choices["cost_model"]
        if isinstance(choice, SavedModel):
            return choice
        if isinstance(choice, str) and choice not in MODELS:
            return _named_file(choice)
        return _read(choice) if isinstance(choice, Path) else MODELS.shared(choice)

    def shipped(self, target: Target) -> SavedModel | None:
        """The model that ships for *target*, if the cost model starts from it."""
        return pretrained_for(target) if self.choices["cost_model"] == "boosted" else None

    def model_for(self, target: Target) -> Callable[[], CostModel]:
        """The factory of the cost model for *target*: boosted starts from the model that ships."""
        return self.shipped(target) or self.model

    def tuning(self, seed: int, target: Target) -> TuneOptions:
        """The options of a tuning run for *target* that uses these parts."""
        chosen = {
            name: part.of(choice)
            for name, choice in self.choices.items()
            if name != "cost_model" and (part := TUNING_PARTS.get(name))
        }
        options = TuneOptions(search=SearchOptions(seed=seed))
        return with_parts(options, {**chosen, "cost_model": self.model_for(target)})

    def policy(self) -> TimingPolicy:
        """The policy for timing candidates."""
        return POLICIES.one(self.choices["measure"])


def _named_file(name: str) -> Callable[[], CostModel]:
    """The trained model in the file *name*; raises :class:`UsageError` if there is none."""
    if not Path(name).is_file():
        raise UsageError(
            f'unknown cost model "{name}"',
            hint=f"use one of {', '.join(MODELS)}, a file that ansorpy dataset train wrote, or a "
            "model that your own script registers",
        )
    return _read(Path(name))


def _read(path: Path) -> Callable[[], CostModel]:
    """The trained model in a file: a network (.npz), weights, or trees."""
    if path.suffix == ".npz":
        return MODELS.shared(read_network(path))
    linear = StaticLinear.read(path)
    return SavedModel.read(path) if linear is None else MODELS.shared(linear)
