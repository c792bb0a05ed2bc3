"""The command that a user is likely to want next."""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from pathlib import Path

from ansorpy.evaluation.engines.names import ENGINES, PEERS

__all__ = ["after_library"]


def after_library(library: Path, model: Path) -> str:
    """What to do with the *library* of *model*: time it, beside the first peer installed here.

    Empty for other files, which only a C compiler reads.
    """
    if library.suffix != ".so":
        return ""
    peers = [name for name in PEERS if find_spec(ENGINES[name][1])]
    if not peers:
        return shlex.join(["ansorpy", "run", str(library)])
    against = ["--against", peers[0]]
    return shlex.join(["ansorpy", "bench", str(library), "--model", str(model), *against])
