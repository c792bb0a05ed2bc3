"""Arguments declared once, for keyword arguments in Python and options on the command line.

A ``TypedDict`` declares arguments, each with an :class:`Option`; functions take them as
``**arguments: Unpack[...]``.  Signatures, docstrings, defaults and the command line's options
follow from that declaration::

    class LimitArguments(TypedDict, total=False):
        trials: Annotated[int | None, Option("Programs to measure in all.")]
"""

from __future__ import annotations

import builtins
import functools
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar, get_args, get_type_hints

from ansorpy.errors import UsageError

__all__ = [
    "Argument", "Option", "completed", "declared", "parameters", "stated", "those",
    "values_by_name", "with_arguments",
]  # fmt: skip

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


@dataclass(frozen=True)
class Option:
    """The meaning of an argument, and its form on the command line.

    Args:
        help: Description in docstrings and ``--help``.
        default: Its value if it is not given.
        flag: The option's name, if it differs from the argument's.
        metavar: Placeholder for its value in ``--help``.
        least: The smallest number accepted.
        parse: Reads one text of an option that may be repeated: a name and its value.
        text: Writes one value of such an option, given it and its name, as *parse* reads it
            behind ``NAME=``.
        python: Further values that Python takes, for docstrings.
    """

    help: str
    default: object = None
    flag: str = ""
    metavar: str | None = None
    least: int | None = None
    parse: Callable[[str], tuple[str, object]] | None = None
    text: Callable[[Any, str], str] = lambda value, name: str(value)
    python: str = ""


@dataclass(frozen=True)
class Argument:
    """A declared argument: its name, the type of its values, its option, and that type's source."""

    name: str
    kind: Any
    option: Option
    source: str

    @property
    def flag(self) -> str:
        """Its name on the command line."""
        return self.option.flag or f"--{self.name.replace('_', '-')}"


class _Names(dict[str, object]):
    """A module's names; names imported only for type checkers stand for unknown types."""

    def __missing__(self, name: str) -> object:
        return getattr(builtins, name, None) or TypeVar(name)


def declared(kind: type) -> list[Argument]:
    """The arguments that the TypedDict *kind* declares, in order."""
    names = _Names(vars(sys.modules[kind.__module__]))
    hints = get_type_hints(kind, names, names, include_extras=True)
    sources = {name: _source(ref.__forward_arg__) for name, ref in kind.__annotations__.items()}
    found = []
    for name, hint in hints.items():
        values, option = get_args(hint)
        found.append(Argument(name, values, option, sources[name]))
    return found


def _source(annotation: str) -> str:
    """The type in ``Annotated[type, Option(...)]``; ``help`` shows it rather than its value, which
    spells out all aliases."""
    return annotation.removeprefix("Annotated[").partition(", Option(")[0]


def completed(kind: type, given: Mapping[str, object]) -> dict[str, Any]:
    """The arguments in *given*, and the defaults of the other ones that *kind* declares.

    Raises:
        UsageError: An argument is not declared.
    """
    known = {argument.name: argument.option.default for argument in declared(kind)}
    _demand_known(given, known)
    return known | dict(given)


def _demand_known(given: Iterable[str], known: Collection[str]) -> None:
    unknown = [name for name in given if name not in known]
    if unknown:
        raise UsageError(
            f'there is no option "{unknown[0]}"', hint=f"the options are {', '.join(known)}"
        )


def values_by_name(
    flag: str, items: Iterable[str], parse: Callable[[str], tuple[str, T]]
) -> dict[str, T]:
    """The values in *items*, the texts of the option *flag*, of which *parse* reads each.

    Raises:
        UsageError: Two of them give a name different values, or as *parse*.
    """
    found: dict[str, T] = {}
    said: dict[str, str] = {}
    for item in items:
        name, value = parse(item)
        if said.setdefault(name, item) != item:
            raise UsageError(
                f"{flag} {said[name]} and {flag} {item} contradict each other",
                hint="give one of them",
            )
        found[name] = value
    return found


def stated(kind: type, given: Mapping[str, object]) -> list[Argument]:
    """The arguments that *kind* declares and *given* has, with another value than the default."""
    return [a for a in declared(kind) if (value := given.get(a.name)) and value != a.option.default]


def those(kind: type, given: Mapping[str, object]) -> dict[str, Any]:
    """The arguments in *given* that *kind* declares."""
    names = {argument.name for argument in declared(kind)}
    return {name: value for name, value in given.items() if name in names}


def parameters(
    function: Callable[..., object], spelled: Callable[[Argument], inspect.Parameter]
) -> tuple[str, type, inspect.Signature]:
    """The name and the TypedDict of the ``**arguments`` of *function*, and its full signature.

    In that signature, *spelled* makes a parameter of each argument.
    """
    signature, hints = inspect.signature(function), get_type_hints(function, include_extras=True)
    [taken] = [p for p in signature.parameters.values() if p.kind is p.VAR_KEYWORD]
    [kind] = get_args(hints[taken.name])
    kept = [
        p.replace(annotation=hints[p.name]) for p in signature.parameters.values() if p is not taken
    ]
    added = [spelled(argument) for argument in declared(kind)]
    return taken.name, kind, signature.replace(parameters=[*kept, *added])


def with_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """*function* with its ``**arguments`` spelled out in its signature and its docstring.

    In the docstring, they replace the line ``**arguments``.  A call with any other argument raises
    :class:`UsageError`.
    """
    written = inspect.signature(function).parameters
    name, kind, signature = parameters(function, _keyword)
    shown = [written.get(p.name, p) for p in signature.parameters.values()]
    function.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
    function.__doc__ = _explained(function.__doc__ or "", name, kind)

    @functools.wraps(function)
    def checked(*positional: P.args, **given: P.kwargs) -> R:
        _demand_known(given, signature.parameters)
        return function(*positional, **given)

    return checked


def _keyword(argument: Argument) -> inspect.Parameter:
    return inspect.Parameter(
        argument.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=argument.option.default,
        annotation=argument.source,
    )


def _explained(text: str, taken: str, kind: type) -> str:
    """*text* with the line of the arguments *taken* replaced by those that *kind* declares."""

    def lines(found: re.Match[str]) -> str:
        return "\n".join(
            textwrap.fill(
                f"{argument.name}: {argument.option.help} {argument.option.python}".rstrip(),
                width=100,
                initial_indent=found[1],
                subsequent_indent=found[1] + "    ",
            )
            for argument in declared(kind)
        )

    return re.sub(rf"^( *)\*\*{taken}$", lines, text, flags=re.MULTILINE)
