"""What a shell offers as values of options: names, loaded when the shell asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import get_args

from ansorpy.evaluation.engines.names import ENGINE_NAMES

__all__ = ["VALUES", "completion_of", "offered"]


def _targets() -> Iterable[str]:
    from ansorpy.target import TARGET_KINDS

    return [name for kind in TARGET_KINDS for name in TARGET_KINDS.one(kind).names]


def _precisions() -> Iterable[str]:
    from ansorpy.ir.task import Precision

    return get_args(Precision)


def _efforts() -> Iterable[str]:
    from ansorpy.tasks.budget import Effort

    return get_args(Effort)


def _parts(kind: str) -> Callable[[], Iterable[str]]:
    def names() -> Iterable[str]:
        from ansorpy.api.parts import PARTS

        return PARTS[kind].names

    return names


VALUES: Mapping[str, Callable[[], Iterable[str]]] = {
    "against": lambda: ENGINE_NAMES,
    "effort": _efforts,
    "precision": _precisions,
    "target": _targets,
    **{
        kind: _parts(kind)
        for kind in (
            "objective", "strategy", "selector", "cost_model", "scheduler", "transfer", "measure",
        )
    },
}  # fmt: skip
"""The names that each argument takes."""


def offered(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """What the parser calls with the beginning of a word."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete) and " " not in name]

    return complete


def completion_of(argument: str) -> Callable[[str], list[str]] | None:
    """The completion of *argument*; None if it takes no names."""
    return offered(VALUES[argument]) if argument in VALUES else None
