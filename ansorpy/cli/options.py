"""Options that only the command line has; :mod:`ansorpy.api.arguments` has the shared ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from ansorpy.cli.completion import completion_of
from ansorpy.errors import UsageError
from ansorpy.runtime.library.forms import Form, Pack

__all__ = [
    "MODEL_PANEL", "SEARCH_PANEL", "Against", "AsJson", "Baseline", "DatabaseFile", "Emit",
    "LatencyBound", "ModelFile", "ModelFiles", "ModelOption", "NetworkWeight", "PackOption",
    "Plugins", "Quiet", "Seed", "TaskName", "Verbose", "refuse_unused",
]  # fmt: skip

MODEL_PANEL, SEARCH_PANEL = "The model and its arithmetic", "How to search"
"""Groups of options in ``--help``."""

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="An .onnx file.")]
ModelFiles = Annotated[
    list[Path], typer.Argument(metavar="MODEL...", help=".onnx files, tuned together.")
]
DatabaseFile = Annotated[
    Path | None,
    typer.Option(
        "--db",
        metavar="FILE",
        help="A tuning database; default: ANSORPY_DB, or the one in the user's cache folder.",
    ),
]
LatencyBound = Annotated[
    list[str] | None,
    typer.Option(
        "--latency-bound",
        metavar="[NET=]5ms",
        help="Sufficient latency, for latency_bounds.",
        rich_help_panel=SEARCH_PANEL,
    ),
]
Baseline = Annotated[
    list[str] | None,
    typer.Option(
        "--baseline",
        metavar="[NET=]9ms",
        help="Latency that geomean compares with.",
        rich_help_panel=SEARCH_PANEL,
    ),
]
NetworkWeight = Annotated[
    list[str] | None,
    typer.Option(
        "--weight",
        metavar="NET=N",
        help="Importance relative to the other networks.",
        rich_help_panel=SEARCH_PANEL,
    ),
]
Plugins = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        metavar="FILE",
        help="A Python script or importable module that registers your own parts or operators.",
    ),
]
Emit = Annotated[
    Form | None,
    typer.Option(
        "--emit",
        help="What to write: a shared (so) or static library (a), an object (o), C source (c), "
        "LLVM IR (ll), assembly (asm); default: by the suffix of the output, else so, "
        "or c for the target c.",
    ),
]
PackOption = Annotated[
    Pack | None,
    typer.Option(
        "--pack",
        help="Constants that the code reads in a larger form are stored as the model has them and "
        "packed by init (at-init, the default), or stored ready to read (in-file).",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(min=0, help="Seed of all random choices; default: ANSORPY_SEED, or 0."),
]
Quiet = Annotated[
    bool, typer.Option("-q", "--quiet", help="Say nothing but warnings, errors and the result.")
]
Verbose = Annotated[
    bool, typer.Option("-v", "--verbose", help="Also show the plan, and where the time went.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Against = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ENGINE...",
        help="Engines to compare with: onnxruntime, openvino, reference.",
        autocompletion=completion_of("against"),
    ),
]
ModelOption = Annotated[
    Path | None, typer.Option("--model", help="The .onnx file that the library was made from.")
]
TaskName = Annotated[
    str | None, typer.Option("--task", help="Only the task with this name or number in the list.")
]


def refuse_unused(command: str, unused: Mapping[str, object]) -> None:
    """Raise :class:`UsageError` if an option that *command* does not use has a value."""
    for option, value in unused.items():
        if value:
            raise UsageError(
                f"{command} does not use {option}",
                hint=f"leave it out; ansorpy {command.split()[0]} --help says what it is for",
            )
