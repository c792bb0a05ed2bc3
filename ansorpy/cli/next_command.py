"""The command that a user is likely to want next."""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from pathlib import Path

from ansorpy.api.evaluate.lookup import Lookup
from ansorpy.evaluation.engines.names import ENGINES, PEERS
from ansorpy.ir.extents import dims_of
from ansorpy.runtime.header import build_command
from ansorpy.runtime.library.forms import Form, Pack, form_of
from ansorpy.runtime.library.shared_library import read_library
from ansorpy.size_ranges import SizeRange

__all__ = ["after_library", "export_command"]


def after_library(library: Path, lookup: Lookup, threads: int) -> str:
    """What to do with the *library* of *lookup*: time it, beside the first peer installed here, at
    one size of each dimension; other forms are for a compiler, which builds the example.

    A network with plugins is run instead, since no peer knows operators that they define.
    """
    if form_of(library) is not Form.SO:
        folder = "" if library.parent == Path() else f"cd {shlex.quote(str(library.parent))} && "
        return folder + build_command(library, threads)
    peers = [name for name in PEERS if find_spec(ENGINES[name][1])]
    sizes = _sizes(library)
    if not peers or lookup.plugins:
        return shlex.join(["ansorpy", "run", str(library), *sizes])
    beside = ["--model", str(lookup.model), "--against", peers[0]]
    same = lookup.options("constants", "threads")
    return shlex.join(["ansorpy", "bench", str(library), *beside, *same, *sizes])


def export_command(
    lookup: Lookup, output: Path, *, memory: int | str | None = None, pack: Pack | None = None
) -> str:  # fmt: skip
    """The command that writes *output* from the records of *lookup*."""
    options = ["-o", str(output)]
    options += [] if memory is None else ["--memory", str(memory)]
    options += [] if pack is None else ["--pack", pack]
    return lookup.command("export", *options)


def _sizes(library: Path) -> list[str]:
    """A usual size of each dimension that the calls of *library* state."""
    ports = read_library(library)[0].input_ports
    flags = []
    for dim in dims_of(extent for port in ports for extent in port.shape):
        flags += ["--dim", f"{dim.name}={SizeRange(dim.low, dim.high, dim.step).usual}"]
    return flags
