"""The campaign: damage an input, run a verb on it, and judge how the verb ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from tests.campaigns.campaign import Campaign
from tests.campaigns.inputs.command_lines import random_command_line
from tests.campaigns.inputs.databases import damaged_database
from tests.campaigns.inputs.libraries import damaged_array, damaged_library
from tests.campaigns.inputs.models import damaged_model
from tests.campaigns.inputs.sound import sound_files
from tests.campaigns.inputs.verbs import can_be_passed, run_verb, surroundings

__all__ = ["INPUTS"]

_SURFACES: dict[str, Callable[[np.random.Generator, Path], list[str]]] = {
    "model": damaged_model,
    "command line": random_command_line,
    "database": damaged_database,
    "library": damaged_library,
    "array": damaged_array,
}
_ORDER = (
    "model", "command line", "model", "command line", "model", "model", "database", "library",
    "array", "database",
)  # fmt: skip
"""The kinds of ten cases; the first six need no tuned network, so the short form takes them."""

_APART_EVERY = 333
"""One in so many verbs runs in a process of its own, which takes a second to begin."""


def _case(rng: np.random.Generator, number: int) -> str:
    surface = _ORDER[number % len(_ORDER)]
    with TemporaryDirectory() as folder:
        arguments = _SURFACES[surface](rng, Path(folder))
        signed = surface in ("database", "library", "array")
        with surroundings(Path(folder), sound_files() if signed else Path(folder)):
            apart = number % _APART_EVERY == _APART_EVERY - 1 and can_be_passed(arguments)
            return f"{surface}: {run_verb(arguments, apart=apart)}"


INPUTS = Campaign(
    "damages models, databases, libraries, arrays and command lines: one plain error, or none",
    _case,
    short=6,
    limit_s=60.0,
)
