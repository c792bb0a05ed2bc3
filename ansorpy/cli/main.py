"""``ansorpy VERB``: the table of verbs, and the conversion of errors to exit codes."""

from __future__ import annotations

import gc
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from ansorpy.cli.exit_codes import (
    EXIT_INTERNAL,
    EXIT_INTERRUPTED,
    EXIT_USAGE,
    exit_code,
    is_debugging,
)
from ansorpy.cli.streams import make_lenient
from ansorpy.cli.verbs.bench import bench
from ansorpy.cli.verbs.compile import compile
from ansorpy.cli.verbs.dataset import dataset
from ansorpy.cli.verbs.db import db
from ansorpy.cli.verbs.doctor import doctor
from ansorpy.cli.verbs.explain import explain
from ansorpy.cli.verbs.export import export
from ansorpy.cli.verbs.package import package
from ansorpy.cli.verbs.report import report
from ansorpy.cli.verbs.run import run
from ansorpy.cli.verbs.show import show
from ansorpy.cli.verbs.tune import tune
from ansorpy.cli.verbs.verify import verify
from ansorpy.errors import ForeignFile, MissingDependency
from ansorpy.evaluation.engines.names import ENGINE_NAMES
from ansorpy.version import __version__

__all__ = ["HELP", "VERBS", "main"]

VERBS: tuple[Callable[..., Any], ...] = (
    compile, tune, export, package, run, bench, verify, show, explain, report, db, dataset,
    doctor,
)  # fmt: skip

_COMPILE, _CHECK, _LOOK = "Compile networks", "Check and time", "Look inside, and keep records"
HELP: dict[str, tuple[str, str]] = {
    "compile": (_COMPILE, "compile net.onnx -o net.so --time-limit 10m"),
    "tune": (_COMPILE, "tune detect.onnx classify.onnx --time-limit 1h"),
    "export": (_COMPILE, "export net.onnx -o net.so"),
    "package": (_COMPILE, "package net.so --wheel"),
    "run": (_CHECK, "run net.so --input x=x.npy --save out.npz"),
    "bench": (_CHECK, "bench net.so --model net.onnx --against onnxruntime openvino"),
    "verify": (_CHECK, "verify net.so --model net.onnx --against onnxruntime"),
    "show": (_LOOK, "show net.onnx --task 0 --as program"),
    "explain": (_LOOK, "explain net.onnx --task 0"),
    "report": (_LOOK, "report --db tune.db"),
    "db": (_LOOK, "db runs --db tune.db"),
    "dataset": (_LOOK, "dataset record net.onnx --random 100 -o programs.npz"),
    "doctor": (_LOOK, "doctor"),
}
"""The purpose of each verb, by which the help is grouped, and an example."""

_ALLOCATIONS = 50_000
"""Objects between two runs of Python's garbage collector, which by default (700) spends a tenth of
the time of a short command on modules and programs that all stay."""

_EPILOG = (
    "Example: ansorpy compile net.onnx -o net.so --effort none\n\n"
    "Environment variables are listed by ansorpy doctor --environment."
)

_HELP_OPTIONS = ["-h", "--help"]

_PLACEHOLDERS = {bool: "", int: "N", float: "X", str: "NAME", Path: "FILE"}
"""What stands for the value of an option that names no placeholder of its own, by its type."""


@cache
def _command(verbs: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    """The parser of ``ansorpy VERB``, which takes longer to make than most command lines to run."""
    app = typer.Typer(
        name="ansorpy",
        help="Compile ONNX networks by searching for fast programs.",
        epilog=_EPILOG,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": _HELP_OPTIONS},
    )
    app.callback()(_common)
    for verb in verbs:
        panel, example = HELP.get(verb.__name__, (None, ""))
        epilog = f"Example: ansorpy {example}" if example else None
        app.command(verb.__name__, help=_help(verb), rich_help_panel=panel, epilog=epilog)(verb)
    parser: Any = typer.main.get_command(app)
    context = typer.Context(parser, help_option_names=_HELP_OPTIONS)
    for command in (parser, *parser.commands.values()):
        for param in (*command.params, command.get_help_option(context)):
            if param.metavar is None:
                param.metavar = _PLACEHOLDERS.get(param.type_descriptor.annotation)
            if param.param_type_name == "argument":
                _show_as_named(param)
    return cast("Callable[..., Any]", parser)


def _show_as_named(argument: Any) -> None:
    """Show *argument* by the name given for it alone: typer adds braces and the Python type."""
    name = argument.metavar
    usage = name if argument.required or name.startswith("[") else f"[{name}]"
    argument.get_usage_pieces = lambda ctx: [usage]
    argument.display_type_rich = lambda ctx: ""


def _help(verb: Callable[..., Any]) -> str:
    """The docstring of *verb*, each paragraph as one line, which the terminal wraps."""
    return "\n\n".join(" ".join(part.split()) for part in (verb.__doc__ or "").split("\n\n"))


def _print_version(asked: bool) -> None:
    if asked:
        print(__version__)
        raise typer.Exit


def _common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Options before the verb."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code (docs/reference/cli.md) and print errors to stderr.

    Without *arguments*, they are those of the process, which then belongs to the command.
    """
    if arguments is None:
        make_lenient()
        gc.set_threshold(_ALLOCATIONS)
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return exit_code(lambda: _parsed(given))
    except Exception as error:
        return _unexpected(error)


def _parsed(arguments: Sequence[str]) -> int:
    parse = _command(VERBS)
    code = parse(repeat_list_option(arguments), prog_name="ansorpy", standalone_mode=False)
    if code == EXIT_INTERRUPTED:  # how the parser reports a KeyboardInterrupt
        print("interrupted", file=sys.stderr)
    return code if isinstance(code, int) else 0


def _unexpected(error: Exception) -> int:
    """Print an error that is not an ``AnsorpyError`` and return its exit code.

    Such errors come from the option parser, a full disk, too little memory or a bug.
    """
    if hasattr(error, "format_message"):  # typer's: a wrong option or a missing argument
        said = error.format_message().replace("Value error, ", "")  # pydantic's
        if said:  # empty without any argument, when only the help is printed
            path = getattr(getattr(error, "ctx", None), "command_path", "ansorpy")
            print(f"error: {said[0].lower()}{said[1:]}", file=sys.stderr)
            print(f"hint: {path} --help says what it takes", file=sys.stderr)
        return EXIT_USAGE
    if isinstance(error, MemoryError):
        print(f"error: there is not enough memory: {error}".rstrip(": "), file=sys.stderr)
        print("hint: make the shapes smaller", file=sys.stderr)
        return MissingDependency.exit_code
    debugging = is_debugging()
    if debugging:
        traceback.print_exception(error)
    if isinstance(error, OSError):  # while writing a file
        where = "" if error.filename is None else f"{error.filename}: "
        print(f"error: {where}{error.strerror or error}", file=sys.stderr)
        print("hint: check the folder, its free space and permissions", file=sys.stderr)
        return ForeignFile.exit_code
    if not debugging:
        print(f"internal error: {type(error).__name__}: {error}", file=sys.stderr)
        print("hint: please report it; ANSORPY_DEBUG=1 shows the traceback", file=sys.stderr)
    return EXIT_INTERNAL


def repeat_list_option(arguments: Sequence[str]) -> list[str]:
    """Rewrite ``--against a b`` to ``--against a --against b``, which the parser understands.

    Only engine names count as further values, so a file may follow them.
    """
    result: list[str] = []
    listing = False
    for argument in arguments:
        if listing and argument in ENGINE_NAMES and result[-1] != "--against":
            result.append("--against")
        elif argument not in ENGINE_NAMES:
            listing = argument == "--against"
        result.append(argument)
    return result
