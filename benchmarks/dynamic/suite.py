"""The networks that are measured, their dimension, and random sizes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import onnx

from ansorpy.evaluation.engines.protocol import Shapes
from ansorpy.evaluation.onnx_inputs import input_specs, read_model
from benchmarks.zoo.bert import BertSize, bert
from benchmarks.zoo.decoder import DecoderSize, decoder
from benchmarks.zoo.files import saved_once
from benchmarks.zoo.recogniser import RecogniserSize, recogniser

__all__ = ["FULL", "TINY", "DynamicModel", "cache_pairs", "shapes_at"]


@dataclass(frozen=True)
class DynamicModel:
    """A network whose dimension *dim* has sizes from *low* to *high*; *write* takes a seed.

    ``parts`` are those of the benchmark that are measured of it by default.
    """

    name: str
    dim: str
    low: int
    high: int
    write: Callable[[int], onnx.ModelProto]
    parts: tuple[str, ...] = ("tuned", "peers", "costs")

    def file(self, seed: int, folder: Path) -> Path:
        """The network's file in *folder*, written if missing."""
        return saved_once(folder / f"{self.name}.{seed}.onnx", lambda: self.write(seed))

    def random_sizes(self, count: int, seed: int) -> tuple[int, ...]:
        """At most *count* different sizes in ascending order, a third of them primes."""
        rng = np.random.default_rng([seed, count])
        every = np.arange(self.low, self.high + 1)
        primes = [n for n in every if _is_prime(int(n))]
        chosen = rng.choice(primes, min(len(primes), -(-count // 3)), replace=False)
        rest = np.setdiff1d(every, chosen)
        more = rng.choice(rest, min(len(rest), count - len(chosen)), replace=False)
        return tuple(sorted(int(n) for n in (*chosen, *more)))


def shapes_at(path: Path, dim: str, size: int) -> Shapes:
    """The shapes of all inputs of the network in the file *path* where *dim* has this *size*."""
    return {spec.name: spec.shape for spec in input_specs(read_model(path), dims={dim: size})}


def cache_pairs(path: Path) -> dict[str, str]:
    """The inputs of the network in the file *path* that are caches, and what continues each."""
    graph = read_model(path).graph
    outputs = {value.name for value in graph.output}
    pairs = {value.name: value.name.replace("past", "present", 1) for value in graph.input}
    return {past: new for past, new in pairs.items() if new != past and new in outputs}


def _is_prime(n: int) -> bool:
    return n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))


def _named(*models: DynamicModel) -> Mapping[str, DynamicModel]:
    return {model.name: model for model in models}


STEPS = ("positions", "costs")
FULL = _named(
    DynamicModel("bert", "seq", 1, 512, bert),
    DynamicModel("recogniser", "w", 320, 1280, recogniser),
    DynamicModel("decoder", "past", 0, 2047, decoder, STEPS),
    DynamicModel(
        "decoder_tokens_first", "past", 0, 2047,
        partial(decoder, size=DecoderSize(tokens_first=True)), STEPS,
    ),
)  # fmt: skip
"""By name; the last one differs from ``decoder`` in the layout of its caches."""

_BERT = BertSize(layers=2, width=24, heads=3, words=50, places=40)
_RECOGNISER = RecogniserSize(channels=4, width=24, heads=3, layers=1, classes=11)
_DECODER = DecoderSize(layers=2, width=24, heads=3, words=50, places=24)
_TOKENS_FIRST = replace(_DECODER, tokens_first=True)
TINY = _named(
    DynamicModel("bert", "seq", 1, 40, partial(bert, size=_BERT)),
    DynamicModel("recogniser", "w", 32, 90, partial(recogniser, size=_RECOGNISER)),
    DynamicModel("decoder", "past", 0, 23, partial(decoder, size=_DECODER), STEPS),
    DynamicModel(
        "decoder_tokens_first", "past", 0, 23, partial(decoder, size=_TOKENS_FIRST), STEPS
    ),
)
"""The same structures with extents so small that a run of the benchmark takes seconds."""
