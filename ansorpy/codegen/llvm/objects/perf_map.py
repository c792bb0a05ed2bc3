"""The names of functions in memory for Linux ``perf``: ``/tmp/perf-PID.map``.

``perf report`` and flame graphs look up addresses without a file in this map, whose lines are the
address, the size and the name of a function.  Source: tools/perf/Documentation/jit-interface.txt.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ansorpy.codegen.llvm.objects.elf import SYMTAB, sections_of, symbols_of

__all__ = ["MappedFunction", "functions_of", "map_path", "write_map"]

_FUNCTION, _GLOBAL = 2, 1


@dataclass(frozen=True)
class MappedFunction:
    """A function that an object file defines, *offset* bytes into a *section*.

    ``is_global``: whether a linker finds it by its name.
    """

    name: str
    section: int
    offset: int
    size: int
    is_global: bool


def map_path() -> Path:
    """The map of this process, where ``perf`` looks for it."""
    return Path(f"/tmp/perf-{os.getpid()}.map")


def functions_of(image: bytes) -> Iterator[MappedFunction]:
    """The functions that the 64-bit ELF object *image* defines."""
    sections = sections_of(image)
    for table in sections:
        if table.kind != SYMTAB:
            continue
        for found in symbols_of(image, table, sections[table.link]):
            if found.info & 15 == _FUNCTION and found.section:
                is_global = found.info >> 4 == _GLOBAL
                yield MappedFunction(
                    found.name.decode(), found.section, found.value, found.size, is_global
                )


def write_map(
    images: Sequence[bytes], address_of: Callable[[str], int], labels: Mapping[str, str]
) -> None:
    """Add the functions of *images*, which are loaded, to the map of this process.

    Args:
        address_of: Returns where a global function is; others lie in its section beside it.
        labels: Names to show instead of symbols, also where these begin a longer name.
    """
    lines = []
    for image in images:
        functions = list(functions_of(image))
        starts = {f.section: address_of(f.name) - f.offset for f in functions if f.is_global}
        lines += [
            f"{starts[f.section] + f.offset:x} {f.size:x} {_shown(f.name, labels)}\n"
            for f in functions
            if f.section in starts
        ]
    with map_path().open("a", encoding="utf-8", errors="replace") as file:
        file.writelines(lines)


def _shown(name: str, labels: Mapping[str, str]) -> str:
    """The *name* of a function as the map has it, whose lines end with it."""
    symbol, dot, rest = name.partition(".")
    label = " ".join(labels.get(symbol, symbol).split())
    return label + dot + rest
