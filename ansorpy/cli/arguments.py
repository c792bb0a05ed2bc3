"""Turn the declared ``**arguments`` of verbs into command-line options."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Set
from typing import Annotated, Any, ParamSpec, get_args

import typer

from ansorpy.api.arguments import (
    LimitArguments,
    NetworkArguments,
    SearchArguments,
    TaskArguments,
)
from ansorpy.cli.completion import completion_of
from ansorpy.cli.options import MODEL_PANEL, SEARCH_PANEL
from ansorpy.options import Argument, declared, parameters, values_by_name

__all__ = ["with_options"]

P = ParamSpec("P")

_FIRST = ("effort", "time_limit", "target", "threads", "db")
_PANELS = {
    argument.name: panel
    for kind, panel in (
        (SearchArguments, SEARCH_PANEL),
        (LimitArguments, SEARCH_PANEL),
        (TaskArguments, MODEL_PANEL),
        (NetworkArguments, MODEL_PANEL),
    )
    for argument in declared(kind)
    if argument.name not in _FIRST
}
"""The groups of options in ``--help`` below those that most users need."""


def with_options(verb: Callable[P, None]) -> Callable[P, None]:
    """*verb* with an option for each of its ``**arguments``; only given options are passed on.

    In ``--help``, they come before the options that *verb* takes by keyword only.
    """
    _, kind, signature = parameters(verb, _spelled)
    arguments = declared(kind)
    signature = signature.replace(parameters=_in_order(signature, {a.name for a in arguments}))

    @functools.wraps(verb)
    def run(*positional: P.args, **given: P.kwargs) -> None:
        values: dict[str, Any] = dict(given)
        for argument in arguments:
            value = values.pop(argument.name)
            if value is not None:
                parse = argument.option.parse
                values[argument.name] = (
                    value if parse is None else values_by_name(argument.flag, value, parse)
                )
        verb(*positional, **values)

    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {name: p.annotation for name, p in signature.parameters.items()}
    return run


def _in_order(signature: inspect.Signature, shared: Set[str]) -> list[inspect.Parameter]:
    """The parameters: those that may be positional, the *shared* ones, the keyword-only ones."""

    def place(parameter: inspect.Parameter) -> int:
        if parameter.kind is not parameter.KEYWORD_ONLY:
            return 0
        return 1 if parameter.name in shared else 2

    return sorted(signature.parameters.values(), key=place)


def _spelled(argument: Argument) -> inspect.Parameter:
    option = argument.option
    said = typer.Option(
        argument.flag,
        help=option.help,
        metavar=option.metavar,
        min=option.least,
        autocompletion=completion_of(argument.name),
        rich_help_panel=_PANELS.get(argument.name),
    )
    return inspect.Parameter(
        argument.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None if option.parse else option.default,
        annotation=Annotated[_parsed_as(argument), said],
    )


def _parsed_as(argument: Argument) -> Any:
    """The type for the parser: the argument's own type if it is simple, otherwise text."""
    kinds = get_args(argument.kind) or (argument.kind,)
    if argument.option.parse is not None:
        return list[str] | None
    return int | None if int in kinds and str not in kinds else str | None
