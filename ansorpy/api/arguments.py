"""The arguments of the Python functions, which are also the options of the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

from numpy.typing import ArrayLike

from ansorpy.aliases import named_alias
from ansorpy.constants import constant_text, named_constant
from ansorpy.errors import UsageError
from ansorpy.options import Option, stated
from ansorpy.registry import Choice
from ansorpy.size_bounds import AnyBound, bound_text, named_bound
from ansorpy.size_ranges import AnySize, named_dim, named_shape, shape_text, size_text

if TYPE_CHECKING:
    from ansorpy.cost.protocol import CostModel
    from ansorpy.ir.task import Precision
    from ansorpy.measure.run.timing import TimingPolicy
    from ansorpy.search.selector import Selector
    from ansorpy.search.strategy import Strategy
    from ansorpy.search.transfer import TransferSource
    from ansorpy.target import Target
    from ansorpy.tasks.budget import Effort
    from ansorpy.tasks.objective import Objective
    from ansorpy.tasks.scheduler import TaskScheduler

__all__ = [
    "CompileArguments", "ExplainArguments", "ExportArguments", "HostLookupArguments",
    "LimitArguments", "LookupArguments", "NetworkArguments", "PartArguments", "SearchArguments",
    "SizeArguments", "TaskArguments", "UNMEASURED", "demand_by_name", "demand_no_network",
]  # fmt: skip


class LimitArguments(TypedDict, total=False):
    """Limits on how much is measured."""

    effort: Annotated[
        Effort,
        Option(
            "none measures nothing beyond checking that results are correct; quick takes 5 minutes "
            "for a network and 30 s for an operator; full takes 30 and 3 minutes. An explicit "
            "limit replaces that of the effort.",
            default="quick",
            metavar="none|quick|full",
        ),
    ]
    trials: Annotated[
        int | None,
        Option("Programs to measure in all; those already in the database count.", least=1),
    ]
    trials_per_task: Annotated[int | None, Option("Programs to measure for each task.", least=1)]
    time_limit: Annotated[
        float | str | None,
        Option("Time to search: seconds, or 90s, 10m, 1h30m.", metavar="DURATION"),
    ]


UNMEASURED: LimitArguments = {
    "effort": "none", "trials": None, "trials_per_task": None, "time_limit": None,
}  # fmt: skip
"""With these, nothing is measured."""


class PartArguments(TypedDict, total=False):
    """The exchangeable parts of a search, by name; Python also takes objects and factories."""

    objective: Annotated[
        Choice[Objective],
        Option(
            "Function of the latencies to minimize: weighted_sum; latency_bounds, done when all "
            "bounds are met; geomean of the speed-ups; early_stop, which ignores tasks that no "
            "longer improve.",
            default="weighted_sum",
        ),
    ]
    strategy: Annotated[
        Choice[Strategy],
        Option("Proposes candidates; ansorpy doctor --parts lists names.", default="evolution"),
    ]
    selector: Annotated[
        Choice[Selector], Option("Picks candidates to measure.", default="epsilon_greedy")
    ]
    cost_model: Annotated[
        Choice[CostModel] | Path,
        Option(
            "Ranks candidates without running them; a name, or a file from ansorpy dataset train.",
            default="boosted",
        ),
    ]
    scheduler: Annotated[
        Choice[TaskScheduler],
        Option("Task scheduling policy: which task gets the next round.", default="gradient"),
    ]
    transfer: Annotated[
        Choice[TransferSource],
        Option("Reuses earlier trials of the same task and of others.", default="both"),
    ]
    measure: Annotated[
        Choice[TimingPolicy], Option("Decides how long a program is timed.", default="fixed")
    ]


class HostTaskArguments(TypedDict, total=False):
    """Threads and precision of the compiled programs."""

    threads: Annotated[
        int | None, Option("Threads of the programs; default: all usable cores.", least=1)
    ]
    precision: Annotated[
        Precision,
        Option(
            "strict: no algorithm with a stated error (Winograd, attention in blocks of keys or "
            "divided after its product); tf32: float32 factors may be rounded for tensor cores. "
            "Sums may be reassociated in every mode.",
            default="default",
            metavar="default|strict|tf32",
        ),
    ]


class TaskArguments(HostTaskArguments, total=False):
    """Target, threads and precision of the compiled programs."""

    target: Annotated[
        Target | str | None,
        Option(
            "Machine to compile for: host, x86-64-v3, cortex-a76, rv64gcv, sm_90, an LLVM "
            "triple. The verbs compile and export take several x86 CPUs, of which init chooses.",
            default="host",
        ),
    ]


class SizeArguments(TypedDict, total=False):
    """What a network's file leaves open: sizes, ranges of sizes, and which tensors share memory."""

    shapes: Annotated[
        Mapping[str, Sequence[AnySize]] | None,
        Option(
            "Shapes of inputs, by name; a size may be a range.",
            flag="--shape",
            metavar="NAME=1x3x48x64..1280",
            parse=named_shape,
            text=shape_text,
        ),
    ]
    dims: Annotated[
        Mapping[str, AnySize] | None,
        Option(
            "Sizes of dimensions, by name: 8, 1..512, 1..512:geometric, 320..1280:step=32, 1,8,32, "
            "or @FILE with one observed size a line.",
            flag="--dim",
            metavar="NAME=N..M",
            parse=named_dim,
            text=size_text,
            python="Also (1, 512), (320, 1280, 32) and [1, 8, 32].",
        ),
    ]
    constants: Annotated[
        Mapping[str, ArrayLike] | None,
        Option(
            "Values of inputs that are known: axes=[0,1], k=5, or from a file of numpy: "
            "mask=@mask.npy. They are no inputs any more.",
            flag="--const",
            metavar="NAME=VALUE",
            parse=named_constant,
            text=lambda value, name: constant_text(value),
        ),
    ]
    bounds: Annotated[
        Mapping[str, AnyBound] | None,
        Option(
            "What sizes that depend on data are at most, by the tensor that has the size, or whose "
            "length it is: 100, 1..100, or one for each of its numbers: 1,3,1..640.",
            flag="--bound",
            metavar="NAME=N",
            parse=named_bound,
            text=bound_text,
            python="Also (1, 100) and lists.",
        ),
    ]
    alias: Annotated[
        Mapping[str, str] | None,
        Option(
            "Outputs that continue an input in its own memory, as caches of a decoder do; pairs of "
            "patterns such as present.*.key=past.*.key stand for several.",
            metavar="OUTPUT=INPUT",
            parse=named_alias,
        ),
    ]


_EXAMPLES = {
    "shapes": '{"x": (1, 3, 224, 224)}', "dims": '{"n": 8}', "constants": '{"k": 5}',
    "bounds": '{"trip": 100}', "alias": '{"present": "past"}',
}  # fmt: skip
"""What :class:`SizeArguments` look like in Python."""


def demand_by_name(given: Mapping[str, object]) -> None:
    """Check that those of *given* which are :class:`SizeArguments` have values by name.

    Raises:
        UsageError: One is no mapping, or a name is no text.
    """
    for argument, example in _EXAMPLES.items():
        value, hint = given.get(argument), f"pass {argument}={example}"
        if value is None:
            continue
        if not isinstance(value, Mapping):
            said = type(value).__name__
            raise UsageError(f"{argument}= takes values by name, got {said}", hint=hint)
        for name in value:
            if not isinstance(name, str):
                raise UsageError(f"{name!r} is no name for {argument}=", hint=hint)


class NetworkArguments(SizeArguments, total=False):
    """Limits of one network."""

    memory: Annotated[
        int | str | None,
        Option("Memory the model may use: bytes, or 512MiB, 1GiB.", metavar="SIZE"),
    ]


class SearchArguments(LimitArguments, TaskArguments, PartArguments, total=False):
    """Arguments of a search."""

    db: Annotated[
        Path | str | None,
        Option(
            "Database in which trials are stored and from which a search resumes; default: "
            "ANSORPY_DB, or one in the user's cache folder.",
            metavar="FILE",
        ),
    ]
    workers: Annotated[
        str,
        Option(
            "Where programs are timed: local, or a Ray cluster (ray://host:10001).",
            default="local",
            metavar="ADDRESS",
        ),
    ]
    seed: Annotated[
        int | None, Option("Seed of all random choices; default: ANSORPY_SEED, or 0.", least=0)
    ]


class HostLookupArguments(HostTaskArguments, SizeArguments, total=False):
    """Arguments that identify the records of a network for this machine."""

    db: Annotated[
        Path | str | None,
        Option(
            "Database in which trials were stored; default: ANSORPY_DB, or the one in the user's "
            "cache folder.",
            metavar="FILE",
        ),
    ]


class LookupArguments(HostLookupArguments, TaskArguments, total=False):
    """Arguments that identify the records of a network."""


def demand_no_network(given: Mapping[str, object]) -> None:
    """Check that those of *given* which are :class:`LookupArguments` name a database at most.

    Raises:
        UsageError: One says something about a network, and there is none.
    """
    for argument in stated(LookupArguments, given):
        if argument.name != "db":
            raise UsageError(
                f"{argument.flag} ({argument.name}= in Python) is for a network",
                hint="name its file, too",
            )


class ExportArguments(LookupArguments, NetworkArguments, total=False):
    """Arguments for compiling a network from records."""


class ExplainArguments(TaskArguments, SizeArguments, total=False):
    """Arguments on which a network's tasks depend."""


class CompileArguments(SearchArguments, NetworkArguments, total=False):
    """Arguments for tuning and compiling one network."""
