"""The campaign: grow a network, compute it in all ways, and compare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto

from ansorpy.errors import UnsupportedModel
from ansorpy.target import Target
from tests.campaigns.campaign import Campaign
from tests.campaigns.networks.engines import (
    by_onnxruntime,
    by_reference,
    compiled_model,
    drawn_model,
    optimised,
    unoptimised,
    with_open_sizes,
)
from tests.campaigns.networks.families import FAMILIES
from tests.campaigns.networks.growing import Growing
from tests.campaigns.networks.values import Unstable, Value, allowed_error, is_float
from tests.graph.executor import run_network

__all__ = ["NETWORKS", "compare", "grown"]

Array = NDArray[Any]

_FLOATS = (
    *(np.dtype(np.float32),) * 10, *(np.dtype(np.float16),) * 2, np.dtype(np.float64),
    np.dtype(ml_dtypes.bfloat16),
)  # fmt: skip
_OPSETS = (18, 20, 21, 21, 22, 23, 23, 24, 25, 26, 28)
_MOST_STEPS = 20
_TRIES = 3
_OPEN = 0.25
"""Share of networks of which a size of the inputs is left open, too."""
_COMPILED_EVERY = 40
"""Predicting programs takes seconds for each of these, and drawing them a fraction of a second."""


def begun(rng: np.random.Generator) -> Growing:
    """A network of one input."""
    net = Growing(
        rng,
        _FLOATS[int(rng.integers(len(_FLOATS)))],
        int(rng.choice(_OPSETS)),
        strict=bool(rng.random() < 0.7),
    )
    net.new_input(net.shape())
    return net


def grown(rng: np.random.Generator) -> Growing:
    """A network of 1 to about 30 nodes."""
    net = begun(rng)
    steps = net.count(1, net.count(1, _MOST_STEPS))
    weights = np.array(list(FAMILIES.values()))
    while steps or not net.nodes:
        family = list(FAMILIES)[int(rng.choice(len(FAMILIES), p=weights / weights.sum()))]
        for _ in range(_TRIES):  # with other operands and constants
            try:
                family(net)
            except Unstable:
                continue
            break
        steps = max(0, steps - 1)
    return net


def case(rng: np.random.Generator, number: int) -> str:
    """Compare one network; the kind names its float type, and what could not be compared."""
    return compared(grown(rng), rng, number)


def compared(net: Growing, rng: np.random.Generator, number: int) -> str:
    """Compute *net* in all ways and compare; the kind of the case."""
    results = net.results()
    model, feeds = net.model(results), net.feeds()
    kind = [net.floats.name]
    try:
        plain, better = unoptimised(model), optimised(model, rng)
    except UnsupportedModel as error:
        rows = {f"{row.op} {row.attribute}" for row in error.rows}
        return f"{net.floats.name} refused: {', '.join(sorted(rows))}"
    told: dict[str, Sequence[Array]] = {
        "no pass, interpreted": run_network(plain, feeds),
        "all passes, interpreted": run_network(better, feeds),
    }
    told["machine code"] = _run(drawn_model(better, rng, Target.host(), strict=net.strict), feeds)
    if number % _COMPILED_EVERY == _COMPILED_EVERY - 1:
        told["ap.compile"] = _run(compiled_model(model, number), feeds)
        kind.append("compiled as users do")
    if rng.random() < _OPEN:
        open_network = with_open_sizes(model, rng)
        if open_network is not None:
            program = drawn_model(open_network, rng, Target.host(), strict=net.strict)
            told["machine code, for a range of sizes"] = _run(program, feeds)
            kind.append("for a range of sizes")
    for name, found in (
        ("onnxruntime", by_onnxruntime(model, feeds)),
        ("onnx's reference", by_reference(model, feeds)),
    ):
        if found is None:
            kind.append(f"without {name}")
        else:
            told[name] = found
    compare(model, results, told)
    return " ".join(kind)


def _run(model: Any, feeds: dict[str, Array]) -> list[Array]:
    found = model.run(None, feeds)
    return [np.asarray(array) for array in found]


def compare(model: ModelProto, results: Sequence[Value], told: dict[str, Sequence[Array]]) -> None:
    """Raise an error that names every way whose outputs are wrong."""
    problems = [
        f"{way}: {problem}"
        for way, outputs in told.items()
        for value, output in zip(results, outputs, strict=True)
        if (problem := _problem(value, output))
    ]
    if problems:
        nodes = "\n".join(
            f"  {', '.join(n.output)} = {n.op_type}({', '.join(n.input)})" for n in model.graph.node
        )
        raise AssertionError("\n".join([*problems, "of the network", nodes]))


def _problem(value: Value, found: Array) -> str:
    """What is wrong with the output *found*; empty if nothing is."""
    if found.shape != value.shape or found.dtype != value.dtype:
        return f"{value.name} is {found.dtype}{found.shape}, not {value.dtype}{value.shape}"
    if not is_float(value.exact.dtype):
        wrong = np.argwhere(found != value.exact)
        return f"{value.name}: {len(wrong)} of {value.size} differ" if len(wrong) else ""
    off, allowed = np.abs(found.astype(np.float64) - value.exact), allowed_error(value)
    beyond = ~(off <= allowed)
    if not beyond.any():
        return ""
    at = tuple(np.argwhere(beyond)[0])
    return (
        f"{value.name}{list(map(int, at))} is {found[at]}, not {value.exact[at]:.9g}: "
        f"off by {off[at]:.3g}, allowed {allowed[at]:.3g}; {int(beyond.sum())} of {value.size}"
    )


NETWORKS = Campaign(
    "compiles random networks, and compares with onnxruntime, onnx's reference and no passes",
    case,
)
