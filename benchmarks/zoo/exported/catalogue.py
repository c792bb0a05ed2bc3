"""The networks: their inputs, sizes at which they are tried, and which axes their files leave open.

``modules/`` has the networks themselves, which need torch; this file does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ansorpy.arrays import Array

__all__ = ["NETWORKS", "Network", "by_name"]

Sizes = Mapping[str, int]
Feeds = Callable[[np.random.Generator, Sizes], dict[str, Array]]


@dataclass(frozen=True)
class Network:
    """One network.

    Attributes:
        kind: What it is an example of.
        feeds: Random inputs by name, for given sizes.
        sizes: The sizes at which it is tried; with the first it is exported.
        dynamic: The open axes of inputs, by name of the input: the name of each one's dimension.
        outputs: The names of the outputs.
        exporters: Which of torch's exporters can write it, or ``sklearn``.
        selects: Whether outputs are selections by score, such as boxes.
    """

    name: str
    kind: str
    feeds: Feeds
    sizes: tuple[Sizes, ...]
    dynamic: Mapping[str, Mapping[int, str]]
    outputs: tuple[str, ...]
    exporters: tuple[str, ...] = ("dynamo", "script")
    selects: bool = False


def _image(rng: np.random.Generator, sizes: Sizes) -> dict[str, Array]:
    shape = (sizes.get("batch", 1), 3, sizes["height"], sizes["width"])
    return {"image": rng.random(shape, np.float32)}


_SQUARE = {"image": {0: "batch"}}
_ANY_IMAGE = {"image": {0: "batch", 2: "height", 3: "width"}}


def _images(*shapes: tuple[int, int, int]) -> tuple[Sizes, ...]:
    return tuple(dict(zip(("batch", "height", "width"), shape, strict=True)) for shape in shapes)


def _tokens(words: int, *, masked: bool = True) -> Feeds:
    def feeds(rng: np.random.Generator, sizes: Sizes) -> dict[str, Array]:
        shape = sizes["batch"], sizes["sequence"]
        found: dict[str, Array] = {"input_ids": rng.integers(3, words, shape)}
        if masked:
            lengths = rng.integers(1, shape[1] + 1, shape[0])
            lengths[0] = shape[1]
            found["attention_mask"] = (np.arange(shape[1]) < lengths[:, None]).astype(np.int64)
        return found

    return feeds


_TEXT = {
    "input_ids": {0: "batch", 1: "sequence"},
    "attention_mask": {0: "batch", 1: "sequence"},
}
_TEXTS: tuple[Sizes, ...] = (
    {"batch": 2, "sequence": 9},
    {"batch": 1, "sequence": 33},
    {"batch": 3, "sequence": 1},
)


def _cached(words: int, layers: int, heads: int, size: int) -> Feeds:
    """A decoder with its cache; ``past = 0`` is the prefill."""

    def feeds(rng: np.random.Generator, sizes: Sizes) -> dict[str, Array]:
        batch, past, new = sizes["batch"], sizes["past_sequence"], sizes["sequence"]
        found: dict[str, Array] = {
            "input_ids": rng.integers(3, words, (batch, new)),
            "attention_mask": np.ones((batch, past + new), np.int64),
            "position_ids": np.tile(np.arange(past, past + new), (batch, 1)),
        }
        if past:
            found["attention_mask"][-1, 0] = 0
        for layer in range(layers):
            for which in ("key", "value"):
                found[f"past_{which}_{layer}"] = rng.standard_normal(
                    (batch, heads, past, size), np.float32
                )
        return found

    return feeds


def _cached_axes(layers: int) -> dict[str, dict[int, str]]:
    return {
        "input_ids": {0: "batch", 1: "sequence"},
        "attention_mask": {0: "batch", 1: "past_sequence + sequence"},
        "position_ids": {0: "batch", 1: "sequence"},
        **{
            f"past_{which}_{layer}": {0: "batch", 2: "past_sequence"}
            for layer in range(layers) for which in ("key", "value")
        },
    }  # fmt: skip


def _cached_outputs(layers: int) -> tuple[str, ...]:
    return (
        "logits",
        *(f"present_{w}_{layer}" for layer in range(layers) for w in ("key", "value")),
    )


_CACHED_SIZES: tuple[Sizes, ...] = (
    {"batch": 2, "past_sequence": 5, "sequence": 3},
    {"batch": 1, "past_sequence": 0, "sequence": 17},
    {"batch": 1, "past_sequence": 40, "sequence": 1},
)


def _translation(rng: np.random.Generator, sizes: Sizes) -> dict[str, Array]:
    found = _tokens(99)(rng, sizes)
    found["decoder_input_ids"] = rng.integers(3, 99, (sizes["batch"], sizes["target"]))
    return found


_TRANSLATION = {**_TEXT, "decoder_input_ids": {0: "batch", 1: "target"}}
_TRANSLATIONS: tuple[Sizes, ...] = tuple(
    {**sizes, "target": target} for sizes, target in zip(_TEXTS, (4, 1, 7), strict=True)
)


def _wave(rng: np.random.Generator, sizes: Sizes) -> dict[str, Array]:
    return {"wave": rng.standard_normal((sizes["batch"], sizes["samples"]), np.float32)}


def _waves(*shapes: tuple[int, int]) -> tuple[Sizes, ...]:
    return tuple(dict(zip(("batch", "samples"), shape, strict=True)) for shape in shapes)


def _latent(rng: np.random.Generator, sizes: Sizes) -> dict[str, Array]:
    batch, height, width = (sizes[name] for name in ("batch", "height", "width"))
    return {
        "latent": rng.standard_normal((batch, 4, height, width), np.float32),
        "timestep": rng.integers(0, 1000, (batch,)),
        "context": rng.standard_normal((batch, sizes["tokens"], 24), np.float32),
    }


def _sentences(rng: np.random.Generator, sizes: Sizes) -> dict[str, Array]:
    lengths = np.sort(rng.integers(1, sizes["sequence"] + 1, sizes["batch"]))[::-1].copy()
    lengths[0] = sizes["sequence"]
    words = rng.integers(1, 50, (sizes["batch"], sizes["sequence"]))
    return {"words": words, "lengths": lengths.astype(np.int64)}


def _hidden(rng: np.random.Generator, sizes: Sizes) -> dict[str, Array]:
    shape = sizes["batch"], sizes["sequence"], 32
    return {"hidden": rng.standard_normal(shape, np.float32)}


def _rows(features: int, whole: int = 0, missing: bool = False) -> Feeds:
    """Rows of *features* columns, the last *whole* of which are small whole numbers."""

    def feeds(rng: np.random.Generator, sizes: Sizes) -> dict[str, Array]:
        rows = rng.standard_normal((sizes["rows"], features)).astype(np.float32)
        if whole:
            rows[:, -whole:] = rng.integers(0, 4, (sizes["rows"], whole))
        if missing:
            rows[rng.random(rows.shape) < 0.1] = np.nan
        return {"X": rows}

    return feeds


def _classical(
    name: str, feeds: Feeds, outputs: tuple[str, ...] = ("label", "probabilities")
) -> Network:
    sizes: tuple[Sizes, ...] = ({"rows": 5}, {"rows": 1}, {"rows": 31})
    return Network(name, "scikit-learn pipeline", feeds, sizes, {"X": {0: "rows"}}, outputs,
                   ("sklearn",))  # fmt: skip


_BOXES = ("boxes", "scores", "labels")
_ANY_SIZE = {"image": {2: "height", 3: "width"}}
_DETECTED = _images((1, 64, 96), (1, 96, 64), (1, 128, 128))

NETWORKS: Sequence[Network] = (
    Network("unet", "segmentation", _image, _images((2, 64, 96), (1, 32, 32), (1, 128, 64)),
            _ANY_IMAGE, ("masks",)),
    Network("lraspp", "segmentation", _image, _images((2, 64, 96), (1, 32, 32), (1, 128, 64)),
            _ANY_IMAGE, ("masks",)),
    Network("fpn", "segmentation", _image, _images((2, 64, 96), (1, 32, 32), (1, 128, 64)),
            _ANY_IMAGE, ("masks",)),
    Network("deeplab", "segmentation", _image, _images((2, 64, 96), (1, 32, 32), (1, 128, 64)),
            _ANY_IMAGE, ("masks",)),
    Network("yolo", "detection, one stage", _image, _DETECTED, _ANY_SIZE, _BOXES, ("script",),
            selects=True),
    Network("ssdlite", "detection, one stage", _image, _images((1, 96, 96)), {}, _BOXES,
            ("script",), selects=True),
    Network("retinanet", "detection, one stage", _image, _images((1, 64, 96)), {}, _BOXES,
            ("script",), selects=True),
    Network("faster_rcnn", "detection, two stages", _image, _images((1, 64, 96)), {}, _BOXES,
            ("script",), selects=True),
    Network("bert", "text encoder", _tokens(99), _TEXTS, _TEXT, ("hidden", "pooled")),
    Network("roberta", "text encoder", _tokens(99), _TEXTS, _TEXT, ("hidden", "pooled")),
    Network("deberta", "text encoder", _tokens(99), _TEXTS, _TEXT, ("hidden",)),
    Network("plain_encoder", "text encoder", _tokens(99), _TEXTS, _TEXT, ("hidden",),
            ("dynamo",)),
    Network("gpt2", "decoder with cache", _cached(99, 2, 4, 8), _CACHED_SIZES, _cached_axes(2),
            _cached_outputs(2)),
    Network("llama", "decoder with cache", _cached(99, 2, 2, 8), _CACHED_SIZES, _cached_axes(2),
            _cached_outputs(2)),
    Network("t5", "encoder and decoder", _translation, _TRANSLATIONS, _TRANSLATION, ("logits",)),
    Network("bart", "encoder and decoder", _translation, _TRANSLATIONS, _TRANSLATION, ("logits",)),
    Network("conformer", "speech encoder", _wave, _waves((2, 1600), (1, 4000), (3, 803)),
            {"wave": {0: "batch", 1: "samples"}}, ("hidden",)),
    Network("wav2vec2", "speech encoder", _wave, _waves((2, 1600), (1, 4000), (3, 1203)),
            {"wave": {0: "batch", 1: "samples"}}, ("hidden",)),
    Network("whisper", "speech encoder", _wave, _waves((2, 3200), (1, 3200)),
            {"wave": {0: "batch"}}, ("hidden",)),
    Network("swin", "vision transformer with windows", _image, _images((2, 64, 64), (1, 64, 64)),
            _SQUARE, ("scores",)),
    Network("swin_any", "vision transformer with windows", _image,
            _images((1, 64, 96), (1, 96, 64), (1, 128, 128)), _ANY_IMAGE, ("scores",)),
    Network("swin_v2", "vision transformer with windows", _image, _images((2, 64, 64), (1, 64, 64)),
            _SQUARE, ("scores",)),
    Network("timm_swin", "vision transformer with windows", _image,
            _images((2, 64, 64), (1, 64, 64)), _SQUARE, ("scores",)),
    Network("timm_vit", "vision transformer", _image, _images((2, 64, 64), (1, 64, 64)), _SQUARE,
            ("scores",)),
    Network("diffusion", "diffusion U-Net block", _latent,
            tuple({**s, "tokens": 7} for s in _images((2, 32, 64), (1, 32, 32), (1, 64, 32))),
            {"latent": {0: "batch", 2: "height", 3: "width"}, "timestep": {0: "batch"},
             "context": {0: "batch", 1: "tokens"}}, ("noise",)),
    Network("tagger", "LSTM tagger with lengths", _sentences, _TEXTS,
            {"words": {0: "batch", 1: "sequence"}, "lengths": {0: "batch"}}, ("scores",),
            ("script",)),
    Network("experts", "mixture of experts", _hidden, _TEXTS,
            {"hidden": {0: "batch", 1: "sequence"}}, ("mixed",)),
    _classical("scaled_logistic", _rows(6)),
    _classical("columns_forest", _rows(6, whole=2, missing=True)),
    _classical("boosted", _rows(6)),
    _classical("support_vectors", _rows(6)),
    _classical("neighbours", _rows(6)),
    _classical("perceptron", _rows(6)),
    _classical("ridge", _rows(6), ("variable",)),
    _classical("clusters", _rows(6), ("label", "scores")),
)  # fmt: skip

_BY_NAME = {network.name: network for network in NETWORKS}


def by_name(stored: str) -> Network:
    """The network of a stored graph ``network.exporter``."""
    return _BY_NAME[stored.partition(".")[0]]
