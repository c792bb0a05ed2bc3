"""``ansorpy dataset``: record programs as data for cost models, train and evaluate models."""

from __future__ import annotations

import json
import shlex
import sys
from enum import StrEnum
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from ansorpy.api.arguments import SizeArguments
from ansorpy.api.plugins import load_plugins
from ansorpy.cli.arguments import with_options
from ansorpy.cli.options import AsJson, Plugins, Quiet, Seed, refuse_unused
from ansorpy.config import seed_or_default
from ansorpy.cost.split_kinds import Split
from ansorpy.errors import UsageError
from ansorpy.evaluation.tables import show
from ansorpy.options import declared
from ansorpy.target import Target
from ansorpy.writable import demand_writable, write_whole

if TYPE_CHECKING:
    from ansorpy.api.train_model import Source

__all__ = ["dataset"]


class Action(StrEnum):
    """What ``ansorpy dataset`` does."""

    record = "record"
    train = "train"
    eval = "eval"


_Files = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[FILE]...",
        help="record: .onnx files; train: datasets or a tuning database; eval: datasets.",
    ),
]
_CostModels = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="eval: models by name or file; train: one by name; default: analytic and boosted, "
        "to train boosted.",
    ),
]
_HeldOut = Annotated[
    Split, typer.Option(metavar="NAME", help=f"eval: what is held out: {', '.join(Split)}.")
]


@with_options
def dataset(
    action: Annotated[Action, typer.Argument(metavar="record|train|eval", help="What to do.")],
    files: _Files = None,
    *,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="record: the dataset, which grows; train: the model."),
    ] = None,
    random: Annotated[
        int, typer.Option(min=0, help="record: random networks after the given ones.")
    ] = 0,
    programs: Annotated[int, typer.Option(min=4, help="record: programs of each task.")] = 64,
    time_limit: Annotated[
        str | None, typer.Option(metavar="DURATION", help="record: when to stop: 90s, 30m, 2h.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="record: threads of the programs.")
    ] = None,
    target: Annotated[str, typer.Option(help="record, train: the programs' machine.")] = "host",
    cost_model: _CostModels = None,
    split: _HeldOut = Split.BY_TASK,
    plugin: Plugins = None,
    seed: Seed = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
    **arguments: Unpack[SizeArguments],
) -> None:
    """Record measured programs of networks and of random operators, train a cost model on such data
    or on the trials of a tuning database, or evaluate how well models rank programs they never saw.
    """
    of_record: dict[str, object] = {
        "--random": random, "--programs": programs != 64, "--time-limit": time_limit,
        "--threads": threads, **{a.flag: arguments.get(a.name) for a in declared(SizeArguments)},
    }  # fmt: skip
    of_eval = {"--split": split is not Split.BY_TASK}
    unused: dict[Action, dict[str, object]] = {
        Action.record: {"--cost-model": cost_model, "--json": as_json, **of_eval},
        Action.train: {**of_record, **of_eval},
        Action.eval: {"--output": output, "--target": target != "host", **of_record},
    }
    refuse_unused(f"dataset {action.value}", unused[action])
    load_plugins(plugin or ())
    given = files or []
    seed = seed_or_default(seed)
    if action is Action.record:
        _record(
            given, output, random, programs, time_limit, threads, target, seed, quiet, arguments
        )
    elif action is Action.train:
        _train(given, output, cost_model or ["boosted"], target, seed, as_json)
    else:
        _evaluate(given, cost_model or ["analytic", "boosted"], split, seed, quiet, as_json)


def _record(
    networks: list[Path], output: Path | None, random: int, programs: int, time_limit: str | None,
    threads: int | None, target: str, seed: int, quiet: bool, sizes: SizeArguments,
) -> None:  # fmt: skip
    from ansorpy.api.dataset import network_tasks, random_tasks
    from ansorpy.api.request import Request
    from ansorpy.cli.recording import record
    from ansorpy.tasks.record import RecordOptions

    if output is None:
        raise UsageError(
            "a recording needs a file", hint="write: ansorpy dataset record ... -o programs.npz"
        )
    if not networks and not random:
        raise UsageError(
            "there is nothing to record",
            hint="name .onnx files, or a number of random networks: --random 100",
        )
    request = Request.of(effort="none", target=target, threads=threads, seed=seed)
    sources = chain(network_tasks(networks, request, **sizes), random_tasks(random, request))
    record(
        output, sources, request.target, RecordOptions(programs=programs, seed=seed), time_limit,
        quiet=quiet,
    )  # fmt: skip


def _train(
    files: list[Path], output: Path | None, names: list[str], target: str, seed: int, as_json: bool
) -> None:
    from ansorpy.api.train_model import opened
    from ansorpy.cost.models import MODELS

    if not files or output is None:
        raise UsageError(
            "training needs data and a file for the model",
            hint="write: ansorpy dataset train programs.npz -o model.txt",
        )
    name, *others = names
    if others:
        raise UsageError(
            f"one model is trained at a time, not {', '.join(names)}",
            hint="name one with --cost-model",
        )
    MODELS.factory(name)  # refuse an unknown one at once
    demand_writable(output, reads=files)
    train = {"boosted": _boosted, "static_linear": _weights}.get(name, partial(_network, name))
    with opened(files) as source:
        facts, said = train(source, Target.parse(target), output, seed)
    if as_json:
        print(json.dumps(facts, indent=2))
    else:
        print(f"wrote {output}: {said}")


def _boosted(
    source: Source, target: Target, output: Path, seed: int
) -> tuple[dict[str, object], str]:
    from ansorpy.api.train_model import train_model
    from ansorpy.evaluation.ranking import figures, overall_table

    found = train_model(source, target, seed=seed)
    found.save(output)
    model = found.model
    facts = {
        "family": model.family, "programs": model.programs, "failed": found.failed,
        "tasks": model.tasks, "digest": model.digest, "held_out": figures(found.held_out),
    }  # fmt: skip
    failed = f", {found.failed} of which failed" if found.failed else ""
    trained = f"trained on {model.programs} programs of {model.tasks} tasks for {model.family}"
    table = f"\n{overall_table(found.held_out).text()}" if found.held_out else ""
    return facts, f"{trained}{failed}{table}"


def _weights(
    source: Source, target: Target, output: Path, seed: int
) -> tuple[dict[str, object], str]:
    from ansorpy.api.train_model import fit_weights

    found = fit_weights(source, target)
    write_whole(output, found.model.text())
    facts = {
        "family": found.model.family, "programs": found.programs, "tasks": found.tasks,
        "correlation": found.correlation,
    }  # fmt: skip
    return facts, (
        f"fitted to {found.programs} programs of {found.tasks} tasks for {found.model.family}; "
        f"rank correlation with their times {found.correlation:.2f}"
    )


def _network(
    name: str, source: Source, target: Target, output: Path, seed: int
) -> tuple[dict[str, object], str]:
    from ansorpy.api.train_model import train_network
    from ansorpy.cost.models import MODELS
    from ansorpy.cost.neural.network import NetworkModel
    from ansorpy.cost.neural.saved import write_network

    made = MODELS.factory(name)
    is_network = isinstance(made, type) and issubclass(made, NetworkModel)
    if is_network and output.suffix != ".npz":
        path = shlex.quote(str(output.with_suffix(".npz")))
        raise UsageError("networks are saved as arrays", hint=f"write: -o {path}")
    write_network(train_network(source, name, target, seed=seed), output)
    return {"model": name}, f"the network {name}"


def _evaluate(
    files: list[Path], models: list[str], split: Split, seed: int, quiet: bool, as_json: bool
) -> None:
    from ansorpy.api.train_model import evaluate_models, read_datasets
    from ansorpy.evaluation.ranking import models_table

    if not files:
        raise UsageError(
            "an evaluation needs data", hint="write: ansorpy dataset eval programs.npz"
        )
    found = evaluate_models(
        models,
        read_datasets(files),
        split,
        seed=seed,
        listener=(lambda _: None) if quiet else lambda line: print(line, file=sys.stderr),
    )
    if as_json:
        print(json.dumps([each.to_dict() for each in found], indent=2))
    else:
        show(models_table(found, f"split {split.value}: means over the tasks held out"))
