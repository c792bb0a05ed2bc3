"""Options that several verbs share, declared once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ansorpy.config import SEED

__all__ = [
    "DEFAULT_DB", "Against", "AsJson", "Baseline", "Bound", "CostModelName", "Dim", "Effort",
    "EffortOption", "ExistingRecords", "MeasureName", "Memory", "ModelFile", "ModelFiles",
    "ModelOption", "NetworkWeight", "ObjectiveName", "Plugins", "Precision", "PrecisionOption",
    "Records", "RunThreads", "SchedulerName", "Seed", "SelectorName", "Shape", "StrategyName",
    "TargetName", "TaskName", "Threads", "TimeLimit", "TransferName", "Trials", "TrialsPerTask",
    "Workers",
]  # fmt: skip


DEFAULT_DB = Path("ansorpy.db")


class Effort(StrEnum):
    """How long to search."""

    none = "none"
    quick = "quick"
    full = "full"


class Precision(StrEnum):
    """The freedom that arithmetic is allowed."""

    default = "default"
    strict = "strict"
    tf32 = "tf32"


ModelFiles = Annotated[
    list[Path], typer.Argument(metavar="MODEL...", help=".onnx files, tuned together.")
]
ObjectiveName = Annotated[
    str,
    typer.Option("--objective", help="weighted_sum, latency_bounds, geomean or early_stop."),
]
Bound = Annotated[
    list[str] | None,
    typer.Option("--bound", metavar="[NET=]5ms", help="Fast enough, for latency_bounds."),
]
Baseline = Annotated[
    list[str] | None,
    typer.Option("--baseline", metavar="[NET=]9ms", help="What speed-ups count from, for geomean."),
]
NetworkWeight = Annotated[
    list[str] | None,
    typer.Option("--weight", metavar="NET=N", help="Importance beside the other networks."),
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="An .onnx file.")]
EffortOption = Annotated[
    Effort,
    typer.Option(
        help="none measures nothing, quick takes 5 minutes for a network, full 30.",
        show_default=True,
    ),
]
Trials = Annotated[
    int | None, typer.Option(min=1, help="Programs to measure in all; earlier ones count.")
]
TrialsPerTask = Annotated[int | None, typer.Option(min=1, help="Programs to measure a task.")]
TimeLimit = Annotated[str | None, typer.Option(metavar="DURATION", help="10m, 90s, 1h30m.")]
Records = Annotated[Path, typer.Option("--db", help="Where trials are kept and resumed from.")]
ExistingRecords = Annotated[
    Path | None,
    typer.Option("--db", help=f"Where trials were kept; default: {DEFAULT_DB}, if it exists."),
]
TargetName = Annotated[
    str, typer.Option(help="host, x86-64-v3, cortex-a76, rv64gcv, sm_90, a triple.")
]
Threads = Annotated[
    int | None, typer.Option(min=1, help="Threads to tune for; default: all usable cores.")
]
RunThreads = Annotated[
    int | None, typer.Option(min=1, help="Threads to run with; default: all usable cores.")
]
Dim = Annotated[
    list[str] | None, typer.Option(metavar="NAME=N", help="Size of a dynamic dimension.")
]
Shape = Annotated[
    list[str] | None, typer.Option(metavar="NAME:1x3x224x224", help="Shape of an input.")
]
Memory = Annotated[
    str | None, typer.Option(metavar="SIZE", help="Most memory the model may use: 1GiB.")
]
PrecisionOption = Annotated[
    Precision,
    typer.Option(
        help="strict: no algorithm with a stated error (Winograd); sums still go in any order.  "
        "tf32: tensor cores may round float32 factors."
    ),
]
Workers = Annotated[
    str,
    typer.Option(
        metavar="ADDRESS", help="Who times programs: local, or a Ray cluster (ray://host:10001)."
    ),
]
StrategyName = Annotated[
    str, typer.Option("--strategy", help="Who offers candidates; names: ansorpy doctor --parts.")
]
SelectorName = Annotated[str, typer.Option("--selector", help="Who picks what is measured.")]
CostModelName = Annotated[
    str,
    typer.Option(
        "--cost-model",
        help="Who ranks candidates without running them; or a file of ansorpy db model.",
    ),
]
SchedulerName = Annotated[
    str, typer.Option("--scheduler", help="Who says which task gets the next round.")
]
TransferName = Annotated[
    str,
    typer.Option("--transfer", help="What is taken over from earlier trials and similar tasks."),
]
MeasureName = Annotated[str, typer.Option("--measure", help="How long a program is timed.")]
Plugins = Annotated[
    list[Path] | None,
    typer.Option("--plugin", metavar="FILE", help="A Python script that registers parts of yours."),
]
Seed = Annotated[int, typer.Option(min=0, envvar=SEED.name, help="Seed of everything random.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Against = Annotated[
    list[str] | None, typer.Option(metavar="ENGINE...", help="onnxruntime, openvino, reference.")
]
ModelOption = Annotated[
    Path | None, typer.Option("--model", help="The .onnx file a library was made from.")
]
TaskName = Annotated[
    str | None, typer.Option("--task", help="Only the task with this name, or number in the list.")
]
