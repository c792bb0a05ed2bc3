"""What races: a search by the names of its parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from functools import cache

from ansorpy.api.parts import PARTS, Parts
from ansorpy.errors import UsageError

__all__ = ["ANSOR", "KINDS", "Contestant", "contestants"]


@dataclass(frozen=True)
class Contestant:
    """The names of the parts of a search that races exchange."""

    strategy: str
    selector: str
    cost_model: str
    scheduler: str

    @staticmethod
    @cache
    def default() -> Contestant:
        """The parts that a search has unless told otherwise."""
        chosen: Mapping[str, object] = dict(Parts().choices)
        return Contestant(*(str(chosen[kind]) for kind in KINDS))

    @staticmethod
    def parse(text: str) -> Contestant:
        """Parse ``STRATEGY[:SELECTOR[:COST_MODEL[:SCHEDULER]]]``; what is left out is the default.

        Raises:
            UsageError: There are more parts, or no part has such a name.
        """
        names = text.split(":")
        if len(names) > len(KINDS):
            raise UsageError(f"{text!r} is not {':'.join(KINDS).upper()}")
        found = replace(Contestant.default(), **dict(zip(KINDS, names, strict=False)))
        for kind, name in found.parts.items():
            PARTS[kind].factory(name)
        return found

    @staticmethod
    def exchanged(kind: str, name: str) -> Contestant:
        """The default search with its part of *kind* exchanged for *name*, and what that needs."""
        needed = COMPANIONS.get((kind, name), {})
        return replace(Contestant.default(), **{kind: name}, **needed)

    @property
    def parts(self) -> dict[str, str]:
        """The name of each part, by the argument that chooses it."""
        return dict(zip(KINDS, astuple(self), strict=True))

    @property
    def name(self) -> str:
        """The text that :meth:`parse` reads, with every part."""
        return ":".join(astuple(self))

    def is_of(self, kind: str) -> bool:
        """Whether the stage that exchanges parts of *kind* shows it: hybrids are strategies."""
        alone = [k for k in KINDS if self == Contestant.exchanged(k, self.parts[k])]
        return kind in alone or (kind == "strategy" and not alone)

    def label(self, kind: str) -> str:
        """Its name where parts of *kind* are exchanged: the parts that are not the default's."""
        usual = Contestant.default()
        if self == usual:
            return f"{self.parts[kind]} (default)"
        own = zip(astuple(self), astuple(usual), strict=True)
        return ":".join(name for name, other in own if name != other)


KINDS = tuple(field.name for field in fields(Contestant))

COMPANIONS: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("selector", "ei"): {"cost_model": "rf"},
}
"""What a part by its kind and name does not work without, other than the default."""

ANSOR = Contestant("evolution", "epsilon_greedy", "boosted", "gradient")
"""The parts of Ansor's search (Zheng et al., OSDI 2020), which every default is compared with."""


def contestants(kind: str, only: Sequence[str] = ()) -> list[Contestant]:
    """The default search with its part of *kind* exchanged for each that is registered.

    *only* names some of these instead, or whole searches as :meth:`Contestant.parse` reads them.
    :data:`ANSOR` and the default race in any case.
    """
    found = [Contestant.default(), ANSOR, *_asked(kind, only or tuple(PARTS[kind]))]
    return list(dict.fromkeys(found))


def _asked(kind: str, names: Sequence[str]) -> Iterator[Contestant]:
    for name in names:
        if ":" in name:
            yield Contestant.parse(name)
        else:
            PARTS[kind].factory(name)
            yield Contestant.exchanged(kind, name)
