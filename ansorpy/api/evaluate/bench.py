"""Timing of a network next to other engines, each in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Unpack

from ansorpy.api.arguments import LookupArguments
from ansorpy.api.display.shown import lines_to
from ansorpy.api.evaluate.engine import sendable
from ansorpy.api.evaluate.libraries import is_library
from ansorpy.api.evaluate.lookup import Lookup
from ansorpy.api.evaluate.models import onnx_beside, with_known_inputs
from ansorpy.api.evaluate.profiling import profiles_of, trace_of
from ansorpy.api.evaluate.sizes import timed_sizes
from ansorpy.api.plugins import load_plugins
from ansorpy.api.request import as_target
from ansorpy.config import default_threads, seed_or_default
from ansorpy.errors import UsageError
from ansorpy.evaluation.bench.processes import Contender
from ansorpy.evaluation.bench.result import Comparison, SizesComparison, named
from ansorpy.evaluation.bench.turns import Policy, compare, compare_sizes
from ansorpy.evaluation.engines.names import demand_engines
from ansorpy.evaluation.profile import CallTime
from ansorpy.measure.gpu.devices import gpus_of
from ansorpy.measure.probe.disturbance import CoreProbe
from ansorpy.options import with_arguments
from ansorpy.quantities import path_of, whole_of
from ansorpy.runtime.compiled import CompiledModel
from ansorpy.runtime.library.forms import stem_of
from ansorpy.runtime.library.shared_library import read_library
from ansorpy.runtime.model import Model, usual_threads
from ansorpy.size_bounds import written_bounds
from ansorpy.target import Target

__all__ = ["bench"]


@with_arguments
def bench(
    model: str | Path | CompiledModel,
    network: str | Path | None = None,
    *,
    against: Sequence[str] = (),
    seed: int | None = None,
    profile: bool = False,
    trace: str | Path | None = None,
    plugins: Sequence[str | Path] = (),
    streams: int = 1,
    progress: Callable[[str], None] | None = None,
    **arguments: Unpack[LookupArguments],
) -> Comparison | SizesComparison:
    """Time *model* and other engines in turn, in bursts; where *dims* lists sizes, at each.

    Each engine has a process of its own, and all but one are stopped.  The bursts end when the
    medians no longer move.

    Args:
        model: A model that was compiled in this process, which is exported first; or the path of a
            library, or of an ONNX file, which is compiled from the records without tuning.
        network: The ONNX file that *model* was made from; needed with *against*.
        against: Engines: ``"onnxruntime"``, ``"openvino"``, ``"reference"``.
        seed: Seed of the inputs; default: ``ANSORPY_SEED``, or 0.
        profile: Also time each call of an ONNX file's kernels inside whole runs.
        trace: Write what each thread does in some runs of an ONNX file, at the first size, to this
            JSON file, for Perfetto.
        plugins: Scripts or modules that register operators of the model.
        streams: Callers at the same time, each with its own threads.
        progress: Receives a line after each round.
        **arguments

    Returns:
        All timed calls of each engine, in seconds; with several sizes, those at each.

    Raises:
        UsageError: *network* is missing, an engine, size or name is unknown, or *profile* or
            *trace* is given for a library.
        MissingDependency: An engine is not installed, or there is no linker to export with.
        EngineFailure: The process of an engine died or hung.
        ForeignFile, UnsupportedModel: A file cannot be read or compiled.
    """
    load_plugins(plugins)
    seed, target = seed_or_default(seed), as_target(arguments.get("target"))
    streams, told = whole_of(streams, "streams"), lines_to(progress)
    beside = None if network is None else path_of(network, "a network")
    traced = None if trace is None else path_of(trace, "a trace")
    with ExitStack() as stack:
        if isinstance(model, Model):
            folder = stack.enter_context(TemporaryDirectory(prefix="ansorpy-"))
            model = model.library or model.export(Path(folder, "model.so"))
        path, threads = path_of(model, "a model"), arguments.get("threads")
        if threads is None:
            threads = _own_threads(path)
        arguments["threads"] = target.threads(threads)
        known = with_known_inputs(Lookup(path, plugins=plugins, **arguments), beside)
        lookup, original = stack.enter_context(known)
        peers, loaded = int(threads or default_threads()), [str(plugin) for plugin in plugins]
        timed = _Bench(original, against, seed, peers, profile, traced, loaded, streams, told)
        return timed.run(lookup)


def _own_threads(model: Path) -> int | None:
    """The threads with which a library for a CPU is loaded; None for other models."""
    if not is_library(model):
        return None
    metadata = read_library(model)[0]
    return None if metadata.target.is_gpu else usual_threads(metadata)


def _gpus(lookup: Lookup) -> list[str]:
    """The bus addresses of the GPUs that may run the network or library; none on a CPU."""
    if not is_library(lookup.model):
        return [gpu.place for gpu in gpus_of(lookup.project.target)]
    machine = read_library(lookup.model)[0].target
    return [gpu.place for gpu in gpus_of(Target.parse(machine.cpu))] if machine.is_gpu else []


@dataclass(frozen=True)
class _Bench:
    """How a network, compiled from the *original* ONNX file, is timed."""

    original: Path | None
    against: Sequence[str]
    seed: int
    peer_threads: int
    profile: bool
    trace: Path | None
    plugins: Sequence[str]
    streams: int
    progress: Callable[[str], None]

    def __post_init__(self) -> None:
        if isinstance(self.against, str) or not isinstance(self.against, Iterable):
            hint = "pass a list, such as ['onnxruntime']"
            raise UsageError("engines are given by a list", hint=hint)
        demand_engines(self.against)

    def run(self, lookup: Lookup) -> Comparison | SizesComparison:
        """Time the network of *lookup* at one size or at several."""
        opened, points, sizes = timed_sizes(lookup, self.original)
        if not is_library(opened.model):
            opened.warn_of_predictions()  # what the engine's process says is not shown
        profiles = profiles_of(opened, sizes, self.seed) if self.profile else []
        if self.trace is not None:
            trace_of(opened, sizes[0], self.seed).save(self.trace)
        name, threads = stem_of(self.original or lookup.model), opened.arguments["threads"] or 1
        probe, policy, gpus = CoreProbe(threads), Policy(streams=self.streams), _gpus(opened)
        if len(points) == 1:
            given: dict[str, object] = {"seed": self.seed, "shapes": sizes[0]}
            timings = compare(
                [self._ours(opened, "Ours", given), *self._peers(opened, "open_peer", given)],
                policy=policy, progress=self.progress, is_disturbed=probe.is_disturbed,
                gpus=gpus,
            )  # fmt: skip
            calls = profiles[0] if profiles else []
            return Comparison(
                name, threads, timings, _kernels_ms(opened, calls), calls, self.streams
            )
        given = {"seed": self.seed, "sizes": sizes}
        at_each = compare_sizes(
            [self._ours(opened, "ours_at", given), *self._peers(opened, "open_peer_at", given)],
            dict(enumerate(map(named, points))),
            policy=policy, progress=self.progress, is_disturbed=probe.is_disturbed,
            gpus=gpus,
        )  # fmt: skip
        return SizesComparison(name, threads, points, [*at_each], profiles, self.streams)

    def _ours(self, lookup: Lookup, factory: str, given: Mapping[str, object]) -> Contender:
        """Our engine, made by a *factory* of :mod:`ansorpy.api.evaluate.engine`."""
        ours = {"path": str(lookup.model), "arguments": sendable(lookup.arguments), **given}
        ours["plugins"] = self.plugins
        return Contender("ansorpy", f"ansorpy.api.evaluate.engine:{factory}", ours)

    def _peers(
        self, lookup: Lookup, factory: str, given: Mapping[str, object]
    ) -> Iterator[Contender]:
        """The others in the given order, made by a *factory* of the engines' protocol."""
        for name in dict.fromkeys(self.against):
            path = str(onnx_beside(lookup.model, self.original))
            peer = {"name": name, "path": path, "threads": self.peer_threads, **given}
            peer["bounds"] = written_bounds(lookup.arguments.get("bounds"))
            yield Contender(name, f"ansorpy.evaluation.engines.protocol:{factory}", peer)


def _kernels_ms(lookup: Lookup, calls: Sequence[CallTime]) -> float | None:
    """What our kernels took alone while tuning: by the library, or by the records of *calls*."""
    if is_library(lookup.model):
        metadata = read_library(lookup.model)[0]
        return metadata.median_ms if metadata.threads == lookup.arguments.get("threads") else None
    alone = [call.alone_s for call in calls if call.alone_s is not None]
    return sum(alone) * 1e3 if calls and len(alone) == len(calls) else None
