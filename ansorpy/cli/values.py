"""Options whose values apply to all networks, or to one that is named."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

from ansorpy.api.arguments import UNMEASURED
from ansorpy.api.request import Request
from ansorpy.errors import UsageError
from ansorpy.options import values_by_name
from ansorpy.quantities import latency_of
from ansorpy.target import Target

__all__ = [
    "by_network",
    "latencies_by_network",
    "network_names",
    "requests_of",
    "targets_of",
    "weights_by_network",
]


def targets_of(given: Target | str | None) -> list[Target | str | None]:
    """The targets in the list *given*, of which a library has a version each.

    Raises:
        UsageError: One is there twice.
    """
    if not isinstance(given, str) or re.match(r"c(:|$)", given):  # C has commas of its own
        return [given]
    names = [name.strip() for name in given.split(",")]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UsageError(f"--target names {twice[0]} twice", hint="name each CPU once")
    return [*names]


def requests_of(search: Mapping[str, Any]) -> list[Request]:
    """A request for each target that *search* names; those that can be timed share its budget.

    Raises:
        UsageError: A target is there twice, or none can be timed although there is a budget.
    """
    names = targets_of(search.get("target"))
    asked = [{**search, "target": name} for name in names]
    if len(asked) == 1:
        return [Request.of(**asked[0])]
    free = [Request.of(**{**one, **UNMEASURED}) for one in asked]
    timed = [request.can_time for request in free]
    if not any(timed):
        return [Request.of(**one) for one in asked]
    found = []
    for one, request, is_timed in zip(asked, free, timed, strict=True):
        if is_timed:
            request = Request.of(**one)
            if request.budget is not None:
                request = replace(request, budget=request.budget.divided(sum(timed)))
        found.append(request)
    return found


def latencies_by_network(
    option: str, values: Iterable[str], names: Sequence[str]
) -> dict[str, float]:
    """Latencies in seconds from values like ``5ms`` and ``NAME=5ms`` (:func:`by_network`)."""
    return {name: latency_of(text) for name, text in by_network(option, values, names).items()}


def weights_by_network(
    option: str, values: Iterable[str], names: Sequence[str]
) -> dict[str, float]:  # fmt: skip
    """Weights from values like ``2`` and ``NAME=2`` (:func:`by_network`)."""
    found = {}
    for name, text in by_network(option, values, names).items():
        try:
            found[name] = float(text)
        except ValueError:
            found[name] = 0.0
        if not 0 < found[name] < inf:
            raise UsageError(f"{option} {text}: not a positive number", hint="write 2, or NET=2")
    return found


def by_network(option: str, values: Iterable[str], names: Sequence[str]) -> dict[str, str]:
    """The value of each network in *names* that has one.

    ``VALUE`` applies to every network, ``NAME=VALUE`` only to one, and takes precedence.

    Raises:
        UsageError: A name is not that of a network, or two values contradict each other.
    """

    def named(value: str) -> tuple[str, str]:
        name, equals, text = value.rpartition("=")
        if equals and name not in names:
            raise UsageError(
                f"{option} {value}: there is no network {name!r}",
                hint=f"the networks are {', '.join(names)}",
            )
        return name, text

    found = values_by_name(option, values, named)
    return dict.fromkeys(names, found.pop("")) | found if "" in found else found


def network_names(models: Sequence[Path]) -> list[str]:
    """Name each network: its file name without ``.onnx``, with its path as given if not unique.

    Raises:
        UsageError: A network is given twice.
    """
    stems = [model.stem for model in models]
    names = [
        stem if stems.count(stem) == 1 else str(model.parent / stem)
        for model, stem in zip(models, stems, strict=True)
    ]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UsageError(
            f"two networks are called {twice[0]}",
            hint="name each network once; --weight makes one count more",
        )
    return names
