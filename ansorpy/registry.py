"""Registries of named parts that users choose from, one per kind, which users can extend.

A folder of alternatives has one registry, with one line for each alternative::

    STRATEGIES: Registry[Strategy] = Registry(
        "strategy", {"evolution": "ansorpy.search.strategies.evolution:Evolution"}
    )

Entries are loaded on first use.  A script adds its own::

    @STRATEGIES.register("mine")
    class Mine: ...

An installed package adds one for every process, including build workers, by an entry point in the
group of the registry's kind (``pyproject.toml``)::

    [project.entry-points."ansorpy.strategy"]
    mine = "my_package.search:Mine"
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from functools import cached_property, partial
from inspect import getdoc, isroutine
from os import PathLike, fspath
from os.path import abspath
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar, cast

from ansorpy.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["Choice", "Registry", "described_error"]

T = TypeVar("T")
Made = TypeVar("Made", bound=Callable[..., object])

Choice: TypeAlias = str | T | Callable[[], T]
"""A caller's choice of a part: its name, an object, or a factory."""


class Registry(Generic[T]):
    """Factories for one *kind* of part, by name.

    A factory, usually the part's class, makes a part when called without arguments.

    Args:
        kind: What error messages call a part: ``"strategy"``.
        homes: ``"module:attribute"`` by name, in the order of listings.
        protocol: What users' parts have, each public name of it; None: anything is a part.
    """

    def __init__(self, kind: str, homes: Mapping[str, str], protocol: type | None = None) -> None:
        self.kind = kind
        self._protocol = protocol
        self._homes: dict[str, str] = dict(homes)
        self._own: dict[str, Callable[[], T]] = {}
        self._defined: dict[str, tuple[str, str] | None] = {}

    def __repr__(self) -> str:
        return f"<Registry {self.kind}: {', '.join(self)}>"

    @property
    def names(self) -> tuple[str, ...]:
        """All names: built-in ones, those that users registered, those of installed packages."""
        return tuple(self)

    @property
    def group(self) -> str:
        """The group of entry points through which installed packages add parts."""
        return f"ansorpy.{re.sub(r'[^a-z]+', '_', self.kind)}"

    @cached_property
    def _installed(self) -> Mapping[str, EntryPoint]:
        from importlib.metadata import entry_points

        return {point.name: point for point in entry_points(group=self.group)}

    def __contains__(self, name: object) -> bool:
        return name in self._homes or name in self._own or name in self._installed

    def __iter__(self) -> Iterator[str]:
        yield from self._homes
        yield from self._own
        yield from self._installed  # last, as entry points are looked up only when reached

    def register(self, name: str) -> Callable[[Made], Made]:
        """Return a decorator that adds a factory (class or function without arguments) as *name*.

        A definition that runs again, as that of a script or a cell of a notebook, replaces itself.

        Raises:
            UsageError: *name* is already taken by another one, or a class lacks a method of such
                parts.
        """

        def add(factory: Made) -> Made:
            defined = _place(factory)
            again = defined is not None and defined == self._defined.get(name)
            if name in self and not again:
                raise UsageError(
                    f'there is a {self.kind} "{name}" already', hint="choose another name"
                )
            self._demand_part(factory)
            self._own[name], self._defined[name] = cast(Callable[[], T], factory), defined
            return factory

        return add

    def remove(self, name: str) -> None:
        """Unregister *name*.

        Raises:
            UsageError: No script registered *name*.
        """
        if self._own.pop(name, None) is None:
            raise UsageError(
                f'no script registered a {self.kind} "{name}"',
                hint=f"registered are: {', '.join(self._own) or 'none'}",
            )
        del self._defined[name]

    def factory(self, choice: Choice[T]) -> Callable[[], T]:
        """Return a factory for the chosen part; each call makes a new part.

        *choice* is a name, a factory, or a part, which each call copies.

        Raises:
            UsageError: The name is unknown, or what was chosen is no such part.
        """
        if isinstance(choice, str):
            return self._named(choice)
        self._demand_part(choice)
        if _is_factory(choice):
            return cast(Callable[[], T], choice)
        return partial(deepcopy, x=cast(T, choice))

    def shared(self, choice: Choice[T]) -> Callable[[], T]:
        """Like :meth:`factory`, but a part is not copied, so it keeps what it learns.

        Raises:
            UsageError: As in :meth:`factory`.
        """
        if isinstance(choice, str) or _is_factory(choice):
            return self.factory(choice)
        self._demand_part(choice)
        return partial(_itself, part=cast(T, choice))

    def one(self, choice: Choice[T]) -> T:
        """The chosen part: *choice* itself, unless it is a name or a factory.

        Raises:
            UsageError: As in :meth:`factory`.
        """
        return self.shared(choice)()

    def descriptions(self) -> dict[str, str]:
        """First lines of the factories' docstrings, by name; loads every entry."""
        return {name: _first_line(self._named(name)) for name in self}

    def _demand_part(self, given: object) -> None:
        """Refuse an object or a class without what the protocol names.

        Of a class, only methods are asked for, as its objects may get attributes when they are
        made; of a function, nothing.  What is still abstract counts as missing.
        """
        if self._protocol is None or isroutine(given) or isinstance(given, partial):
            return
        is_class = isinstance(given, type)
        wanted = [
            name for name, member in vars(self._protocol).items()
            if not name.startswith("_") and (callable(member) or not is_class)
        ]  # fmt: skip
        abstract = getattr(given, "__abstractmethods__", ())
        missing = [name for name in wanted if name in abstract or not hasattr(given, name)]
        if missing:
            base = f"{self._protocol.__module__}.{self._protocol.__qualname__}"
            raise UsageError(
                f"{given!r} is no {self.kind}: it has no {missing[0]}",
                hint=f"use one of {', '.join(self)}, or derive your own from {base}",
            )

    def _named(self, name: str) -> Callable[[], T]:
        if name in self._own:
            return self._own[name]
        if name in self._homes:
            return cast(Callable[[], T], resolve_name(self._homes[name]))
        if name in self._installed:
            installed = self._installed[name].load()
            self._demand_part(installed)
            return cast(Callable[[], T], installed)
        raise UsageError(
            f'unknown {self.kind} "{name}"',
            hint=f"known are {', '.join(self)}; a script of your own can register more",
        )


def _place(factory: object) -> tuple[str, str] | None:
    """The file of a definition and its name there; its module where there is no file."""
    module, name = getattr(factory, "__module__", None), getattr(factory, "__qualname__", None)
    if module is None or name is None or name.endswith("<lambda>"):
        return None
    file = getattr(sys.modules.get(module), "__file__", None)
    return (module if file is None else abspath(file)), name


def _is_factory(choice: object) -> bool:
    return isinstance(choice, type | partial) or isroutine(choice)


def _itself(part: T) -> T:
    return part


def _first_line(factory: Callable[..., object]) -> str:
    return (getdoc(factory) or "").partition("\n")[0]


def described_error(error: Exception, path: str | PathLike[str]) -> str:
    """*error* in one line, with the number of the line in the user's file *path* that raised it."""
    text = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f.lineno for f in frames if f.filename == fspath(path)]
    return f"line {lines[-1]}: {text}" if lines else text
