"""Comparison of a network's outputs with those of another engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Unpack

from ansorpy.api.arguments import HostLookupArguments
from ansorpy.api.display.shown import lines_to
from ansorpy.api.evaluate.libraries import is_library
from ansorpy.api.evaluate.lookup import Lookup
from ansorpy.api.evaluate.models import (
    given_shapes,
    onnx_beside,
    open_model,
    with_known_inputs,
    with_own_sizes,
)
from ansorpy.api.plugins import load_plugins
from ansorpy.config import default_threads, seed_or_default
from ansorpy.constants import constant_flags
from ansorpy.errors import UsageError
from ansorpy.evaluation.engines.protocol import open_engine
from ansorpy.evaluation.inputs import port_bounds, port_shapes, random_feeds
from ansorpy.evaluation.onnx_edit import save, softmax_inputs_as_outputs
from ansorpy.evaluation.onnx_inputs import input_specs, read_model
from ansorpy.evaluation.randomize import random_weights as with_random_weights
from ansorpy.evaluation.verify import DEFAULT_TOLERANCE, Verification, compare_outputs
from ansorpy.options import with_arguments
from ansorpy.quantities import is_real, path_of, whole_of
from ansorpy.runtime.model import Model
from ansorpy.size_bounds import AnyBound
from ansorpy.size_ranges import AnySize

__all__ = ["verify"]


@with_arguments
def verify(
    model: str | Path | Model,
    network: str | Path | None = None,
    *,
    against: str = "onnxruntime",
    tolerance: float = DEFAULT_TOLERANCE,
    random_weights: int | None = None,
    seed: int | None = None,
    plugins: Sequence[str | Path] = (),
    progress: Callable[[str], None] | None = None,
    **arguments: Unpack[HostLookupArguments],
) -> Verification:
    """Compare the outputs of *model* with those of another engine, on random inputs.

    Args:
        model: A model, the path of a library, or that of an ONNX file, which is compiled from the
            records without tuning.
        network: The ONNX file that *model* was made from, if that is a model or a library.
        against: ``"onnxruntime"`` or ``"reference"``, the evaluator of the onnx package.
        tolerance: Error allowed, relative to the largest element of an output.
        random_weights: Seed; draw the network's weights at random first.
        seed: Seed of the inputs; default: ``ANSORPY_SEED``, or 0.
        plugins: Scripts or modules that register operators of the model.
        progress: Receives what is being run; an empty text while the network is compiled.
        **arguments

    Returns:
        The error of each output; ``ok`` says whether all are within the tolerance, and ``demand()``
        raises :class:`~ansorpy.errors.VerificationFailed` if not.

    Raises:
        UsageError: *network* is missing or is another one, an engine or size is unknown, or
            *random_weights* is given for a library or model, whose weights are fixed.
        MissingDependency: onnxruntime is not installed.
        ForeignFile, UnsupportedModel: A file cannot be read or compiled.
    """
    load_plugins(plugins)
    if against not in ("onnxruntime", "reference"):
        raise UsageError(
            f"cannot verify against {against!r}", hint="choose onnxruntime or reference"
        )
    opened = model if isinstance(model, Model) else path_of(model, "a model")
    if random_weights is not None and (isinstance(opened, Model) or is_library(opened)):
        raise UsageError(
            "the weights of a library are fixed", hint="give the .onnx file to draw its weights"
        )
    if not is_real(tolerance) or not float(tolerance) >= 0:  # nan is not
        raise UsageError(f"tolerance must be a number of at least 0, got {tolerance!r}")
    drawn = None if random_weights is None else whole_of(random_weights, "random_weights", 0)
    threads = arguments.get("threads")
    threads = None if threads is None else whole_of(threads, "threads")
    told, inputs = lines_to(progress), seed_or_default(seed)
    comparison = _Comparison(against, float(tolerance), drawn, inputs, threads, told)
    given = None if network is None else path_of(network, "a network")
    if isinstance(opened, Model):
        return comparison.of_model(opened, given, arguments)
    return comparison.of_file(Lookup(opened, plugins=plugins, **arguments), given)


@dataclass(frozen=True)
class _Comparison:
    """How a network is compared with an engine; *weights* and *inputs* are seeds."""

    against: str
    tolerance: float
    weights: int | None
    inputs: int
    threads: int | None
    progress: Callable[[str], None]

    def of_model(
        self, model: Model, network: Path | None, arguments: HostLookupArguments
    ) -> Verification:
        """Compare *model*, which was made from *network* with these *arguments*."""
        if network is None:
            raise UsageError(
                f"the comparison needs the network that {model.name} was made from",
                hint="pass the path of its ONNX file as the second argument",
            )
        asked, ports = Lookup(network, **arguments), model.get_inputs()
        shapes = port_shapes(ports, arguments.get("dims") or {})
        bounds: dict[str, AnyBound] = {**port_bounds(ports), **(arguments.get("bounds") or {})}
        with with_known_inputs(asked.replaced(bounds=bounds), None) as (known, _):
            return self.run(model.name, known.model, lambda _: model, {**shapes}, known.arguments)

    def of_file(self, asked: Lookup, network: Path | None) -> Verification:
        """Compare the library or ONNX file of *asked*; a library was made from *network*."""
        with with_known_inputs(asked, network) as (known, original):
            lookup = with_own_sizes(known, original)
            return self.run(
                lookup.model.name,
                onnx_beside(lookup.model, original),
                lambda reference: open_model(lookup, instead=reference),
                given_shapes(lookup),
                lookup.arguments,
            )

    def run(
        self,
        name: str,
        network: Path,
        opened: Callable[[Path], Model],
        shapes: Mapping[str, Sequence[AnySize]],
        arguments: HostLookupArguments,
    ) -> Verification:
        """Compare what *opened* makes of a copy of *network* with what the engine makes of it.

        The copy has random weights, if these are wanted, and the inputs of its final softmaxes as
        additional outputs.
        """
        source = read_model(network)
        if self.weights is not None:
            source = with_random_weights(source, self.weights)
        extended, softmaxes = softmax_inputs_as_outputs(source)
        specs = input_specs(extended, shapes, arguments.get("dims"), arguments.get("bounds"))
        with TemporaryDirectory(prefix="ansorpy-") as folder:
            reference = Path(folder, network.name)
            save(extended, reference)
            feeds = random_feeds(specs, self.inputs)
            self.progress(f"running {self.against}")
            engine = open_engine(
                self.against, str(reference), feeds, self.threads or default_threads()
            )
            engine.run()
            theirs = {output: value.copy() for output, value in engine.outputs().items()}
            self.progress("")
            ours = opened(reference)
        _demand_inputs(ours, [spec.name for spec in specs])
        self.progress(f"running {name}")
        names, fed = [output.name for output in ours.get_outputs()], ours.with_room(feeds)
        results = dict(zip(names, ours.run(names, fed, threads=self.threads), strict=True))
        return compare_outputs(name, self.against, results, theirs, softmaxes, self.tolerance)


def _demand_inputs(model: Model, names: Iterable[str]) -> None:
    """Raise :class:`UsageError` if *model* lacks some of the inputs *names*."""
    own = {port.name for port in model.get_inputs()}
    missing = [name for name in names if name not in own]
    if missing:
        raise UsageError(
            f"{model.name} has no input {missing[0]!r}, as the network has",
            hint=f"give the values that it was compiled with: {constant_flags(missing)}",
        )
