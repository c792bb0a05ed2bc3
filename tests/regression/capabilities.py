"""Everything a user can name, as sorted text: verbs, signatures, exchangeable parts, operators.

``python -m tests.regression.capabilities`` prints it.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any

import typer

import ansorpy
from ansorpy import errors
from ansorpy.api.parts import PARTS
from ansorpy.cli.main import VERBS
from ansorpy.config import KNOBS
from ansorpy.errors import AnsorpyError, UsageError
from ansorpy.evaluation.engines.names import ENGINE_NAMES
from ansorpy.frontend.onnx.registry import CONTROL, OPERATORS
from ansorpy.rules.presets import ANSOR_CPU, ANSOR_CUDA, CPU, CUDA, Preset
from ansorpy.target import Target

__all__ = ["capabilities"]

PRESETS = {
    "cpu ansor": ANSOR_CPU,
    "cuda ansor": ANSOR_CUDA,
    "cpu default": CPU,
    "cuda default": CUDA,
}


def capabilities() -> str:
    """The list, a heading and its lines a section."""
    sections = {
        "verbs": [line for verb in VERBS for line in _verb(verb)],
        "python": [line for name in sorted(ansorpy.__all__) for line in _public(name)],
        "results": [line for kind in _returned() for line in _class(kind.__qualname__, kind)],
        "parts": [f"{kind}: {name}" for kind in sorted(PARTS) for name in sorted(PARTS[kind])],
        "presets": [f"{name}: {rule}" for name in PRESETS for rule in _rules(PRESETS[name])],
        "targets": sorted(_targets()),
        "engines": sorted(ENGINE_NAMES),
        "environment": sorted(f"{knob.name} = {knob.default}" for knob in KNOBS),
        "onnx operators": sorted({*OPERATORS, *CONTROL}),
        "exit codes": sorted(_exit_codes()),
    }
    return "\n".join(_section(title, lines) for title, lines in sections.items())


def _section(title: str, lines: Iterable[str]) -> str:
    return "\n".join([f"# {title}", *lines, ""])


def _verb(verb: Callable[..., Any]) -> Iterator[str]:
    """What a verb is for, then its arguments and options."""
    app = typer.Typer(add_completion=False)
    app.command()(verb)
    params = typer.main.get_command(app).params
    types = typing.get_type_hints(verb)
    yield f"{verb.__name__}: {' '.join((verb.__doc__ or '').split())}"
    for param in sorted(params, key=lambda param: param.opts):
        names = " ".join([*param.opts, *param.secondary_opts])
        yield f"  {names}: {' '.join(_told(param, types[param.name or '']))}"


def _told(param: Any, kind: Any) -> Iterator[str]:
    """Type, placeholder, default and help of an argument or option."""
    yield _type(kind)
    yield from [param.metavar] * bool(param.metavar)
    yield from ["required"] * param.required
    if param.default not in (None, [], False) and not callable(param.default):
        yield f"[{getattr(param.default, 'value', param.default)}]"
    yield f"({param.help})"


def _type(kind: Any) -> str:
    """*kind* as text, an enum by its values."""
    if inspect.isclass(kind) and issubclass(kind, Enum):
        return "|".join(str(member.value) for member in kind)
    arguments = [a for a in typing.get_args(kind) if a is not type(None)]
    if len(arguments) == 1 and typing.get_origin(kind) is not list:
        return _type(arguments[0])
    return inspect.formatannotation(kind)


def _public(name: str) -> Iterator[str]:
    value = getattr(ansorpy, name)
    if inspect.isclass(value):
        yield from _class(name, value)
    elif callable(value):
        yield f"{name}{_signature(value)}"
    else:
        yield f"{name}: {type(value).__name__}"


def _class(name: str, kind: type) -> Iterator[str]:
    """The constructor, and public members by name, inherited ones too."""
    if issubclass(kind, Enum):
        yield f"{name}: {', '.join(str(member.value) for member in kind)}"
    else:
        yield f"{name}{_signature(kind)}"
    for member in sorted(n for n in dir(kind) if n == "__call__" or not n.startswith("_")):
        value = inspect.getattr_static(kind, member)
        if isinstance(value, kind):
            continue  # a member of an enum
        if isinstance(value, staticmethod | classmethod):
            value = value.__func__
        if inspect.isfunction(value):
            yield f"  .{member}{_signature(value)}"
        else:
            yield f"  .{member}"


def _signature(value: Callable[..., Any]) -> str:
    try:
        return str(inspect.signature(value))
    except ValueError:  # a class of C, or one without a constructor of its own
        return "(...)"


def _returned() -> list[type]:
    """The classes that public functions return, but for those that are public themselves."""
    public = [getattr(ansorpy, name) for name in ansorpy.__all__]
    functions = [value for value in public if inspect.isfunction(value)]
    hints = [typing.get_type_hints(function).get("return") for function in functions]
    parts = [part for hint in hints for part in (hint, *typing.get_args(hint))]
    found = {p for p in parts if inspect.isclass(p) and p.__module__.startswith("ansorpy.")}
    return sorted(found - {v for v in public if inspect.isclass(v)}, key=lambda kind: kind.__name__)


def _rules(preset: Preset) -> list[str]:
    mutations = [rule for rule, _ in preset.mutations]
    families = (preset.algorithms, preset.sketch, preset.placement, preset.annotation, mutations)
    return [type(rule).__name__ for family in families for rule in family]


def _targets() -> list[str]:
    try:
        Target.parse("?")
    except UsageError as error:
        return re.split(r", (?:or )?(?![^(]*\))", str(error.hint).removeprefix("use one of "))
    raise AssertionError("a target is called ?")


def _exit_codes() -> Iterator[str]:
    kinds = [kind for kind in vars(errors).values() if inspect.isclass(kind)]
    for kind in kinds:
        if issubclass(kind, AnsorpyError):
            yield f"{kind.exit_code:3} {kind.__name__}"


if __name__ == "__main__":
    print(capabilities(), end="")
