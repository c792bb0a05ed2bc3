"""Choose C identifiers for variables and buffers, close to their own names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ansorpy.ir.expr import Var
from ansorpy.ir.loops import Buffer

__all__ = ["Names", "Words", "identifier"]


@dataclass(frozen=True)
class Words:
    """Names that generated code must not use: *reserved*, and all that start with *prefixes*."""

    reserved: frozenset[str]
    prefixes: tuple[str, ...] = ()

    def __contains__(self, word: str) -> bool:
        return word in self.reserved or word.startswith(self.prefixes)


def identifier(name: str, words: Words) -> str:
    """Make *name* a C identifier outside *words*; for fused loops, use the first and last name.

    >>> words = Words(frozenset({"float"}))
    >>> [identifier(name, words) for name in ("i.0@j.0@", "C.local", "2nd", "float")]
    ['i_0_j_0', 'C_local', '_2nd', 'float_']
    >>> identifier("n.1@h.1@w.1@co.1@", words), identifier("i0@i1@i2@i3.0@.1_2", words)
    ('n_to_co_1', 'i0_to_i3_0_1_2')
    """
    parts = [part for part in name.split("@") if part]
    axes = [part.split(".")[0] for part in parts if not part.startswith(".")]
    if len(axes) > 2:
        split = parts[len(axes) - 1 :]
        name = f"{axes[0]}_to_{''.join(split)}"
    word = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "v"
    if word[0].isdigit():
        word = f"_{word}"
    # Names starting with two underscores, or one and a capital, are reserved.
    return f"{word}_" if word in words else word


class Names:
    """The names in use, by block: names used in a closed block are free again."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._of: dict[Var | Buffer, str] = {}
        self._taken: set[str] = set()
        self._blocks: list[list[str]] = [[]]

    @contextmanager
    def block(self) -> Iterator[None]:
        """Names given within this context are free again when it exits."""
        self._blocks.append([])
        yield
        self._taken -= set(self._blocks.pop())

    def give(self, thing: Var | Buffer) -> str:
        """Give *thing* a name that differs from all names visible here."""
        self._of[thing] = found = self.fresh(thing.name)
        return found

    def fresh(self, wanted: str) -> str:
        """A name similar to *wanted* that is not in use here."""
        word = identifier(wanted, self._words)
        found, number = word, 0
        while found in self._taken:
            number += 1
            found = f"{word}_{number}"
        self._taken.add(found)
        self._blocks[-1].append(found)
        return found

    def of(self, thing: Var | Buffer) -> str:
        """The name that *thing* was given."""
        return self._of[thing]

    def __contains__(self, thing: object) -> bool:
        """Return whether *thing* was given a name."""
        return thing in self._of
