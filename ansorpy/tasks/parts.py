"""The replaceable parts of a tuning run: where each is registered, and which option holds it.

Callers choose parts by these names, and a recorded run names them by class; both become options
here, so a new kind of part is one line of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ansorpy.cost.models import MODELS
from ansorpy.registry import Registry
from ansorpy.search.selectors import SELECTORS
from ansorpy.search.strategies import STRATEGIES
from ansorpy.search.transfers import TRANSFERS
from ansorpy.tasks.objectives import OBJECTIVES
from ansorpy.tasks.schedulers import SCHEDULERS
from ansorpy.tasks.tune import TuneOptions

__all__ = ["TUNING_PARTS", "TuningPart", "with_parts"]


@dataclass(frozen=True)
class TuningPart:
    """A kind of replaceable part.

    Args:
        registry: The parts of this kind that have a name.
        option: The field of :class:`.TuneOptions` that holds it; dots lead into inner options.
        held: Gives the field's value for a choice: the chosen part, or a factory that makes it.
    """

    registry: Registry[Any]
    option: str
    held: Callable[[Registry[Any], Any], Any] = Registry.one

    def of(self, choice: object) -> Any:
        """What the option holds for *choice*: a name, a part, or a factory."""
        return self.held(self.registry, choice)


TUNING_PARTS: Mapping[str, TuningPart] = {
    "strategy": TuningPart(STRATEGIES, "search.strategy", Registry.factory),
    "selector": TuningPart(SELECTORS, "search.selector"),
    "cost_model": TuningPart(MODELS, "model", Registry.shared),
    "scheduler": TuningPart(SCHEDULERS, "scheduler", Registry.factory),
    "objective": TuningPart(OBJECTIVES, "objective"),
    "transfer": TuningPart(TRANSFERS, "search.transfer"),
}
"""The parts by the name of the argument that chooses one."""


def with_parts(options: TuneOptions, parts: Mapping[str, object]) -> TuneOptions:
    """*options* with each of *parts*, by name, in its field."""
    for name, part in parts.items():
        options = _with_field(options, TUNING_PARTS[name].option.split("."), part)
    return options


def _with_field(options: Any, path: Sequence[str], value: object) -> Any:
    [name, *inner] = path
    return replace(
        options,
        **{name: _with_field(getattr(options, name), inner, value) if inner else value},
    )
