"""The measured steps: each tunes a case, checks it against torch, and times both, alternating."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from functools import partial

from benchmarks.cuda.figures.attention import measure_attention
from benchmarks.cuda.figures.base import Step
from benchmarks.cuda.figures.networks import measure_network
from benchmarks.cuda.figures.operators import measure_case
from benchmarks.cuda.figures.products import measure_product
from benchmarks.cuda.figures.search import measure_search
from benchmarks.ops.case import Case
from benchmarks.ops.suite import case_named, cases

__all__ = ["TUNE_S", "steps"]

TUNE_S = 90.0
"""Seconds of searching an operator, unless told otherwise."""
_NETWORK = 300 / 90
"""A network's seconds for each second of an operator's."""
_SEARCH_S = 60.0
_SEARCHED = "C2D.14x14.256-256.k3s1.b1"

_PRODUCTS = (
    ("float32", 4096, 0.85), ("float16", 4096, 0.75), ("bfloat16", 4096, 0.75),
    ("int8", 4096, 0.70), ("float16", 8192, 0.80), ("bfloat16", 8192, 0.80),
)  # fmt: skip
_PRODUCT_S = {4096: 6.0, 8192: 40.0}
"""Seconds in which 16 cores compute the reference of a product, part of its search."""
_LENGTHS = {512: 4.0, 2048: 20.0, 8192: 80.0}
"""The lengths of attention, and the seconds of its reference, most of them in the interpreter."""
_SUITE = {"float32": 1.2, "float16": 1.0}


def steps(only: Sequence[str] = (), tune_s: float = TUNE_S) -> list[Step]:
    """Products, attention, networks, a search, the suite at batch 1; those that match *only*.

    *tune_s* are the most seconds that an operator is searched for.
    """
    found = [*_products(tune_s), *_attention(tune_s), *_networks(_NETWORK * tune_s), *_rest(tune_s)]
    return [s for s in found if not only or any(fnmatch(s.name, pattern) for pattern in only)]


def _products(tune_s: float) -> Iterator[Step]:
    for dtype, side, wanted in _PRODUCTS:
        measure = partial(measure_product, dtype, side)
        name, reference_s = f"matmul.{dtype}.{side}", _PRODUCT_S[side]
        yield Step(name, wanted, tune_s + reference_s, measure, 6, reference_s)


def _attention(tune_s: float) -> Iterator[Step]:
    for length, reference_s in _LENGTHS.items():
        for width in (64, 128):
            measure = partial(measure_attention, length, width)
            name, limit_s = f"attention.{length}x{width}", tune_s + reference_s
            yield Step(name, 0.7, limit_s, measure, 6, reference_s)


def _networks(tune_s: float) -> Iterator[Step]:
    for name in ("resnet50", "bert_base"):
        eager = partial(measure_network, name, 1, "float32", "eager")
        yield Step(f"network.{name}", 1.5, tune_s, eager, beside_s=20)
        compiled = partial(measure_network, name, 1, "float32", "compile")
        yield Step(f"network.{name}.compiled", 1.0, tune_s / 10, compiled, beside_s=45)
    batch = partial(measure_network, "resnet50", 32, "float16", "compile")
    yield Step("network.resnet50.b32.float16.compiled", 0.9, tune_s, batch, beside_s=60)


def _rest(tune_s: float) -> Iterator[Step]:
    searched = partial(measure_search, case_named(_SEARCHED))
    yield Step("search.conv2d", 1.0, min(tune_s, _SEARCH_S), searched, beside_s=6)
    for dtype, wanted in _SUITE.items():
        for case in _suite():
            measure = partial(measure_case, dtype, case)
            yield Step(f"ops.{dtype}.{case.name}", wanted, tune_s, measure)


def _suite() -> list[Case]:
    return [case for case in cases() if not case.label.endswith(".b16")]
