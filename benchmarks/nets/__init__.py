"""Networks that the benchmark writes as ONNX, with seeded random weights, one per file."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import onnx

from benchmarks.nets.bert import bert, bert_base
from benchmarks.nets.dcgan import dcgan
from benchmarks.nets.decoder import decoder
from benchmarks.nets.decoder_step import decoder_step
from benchmarks.nets.lstm_tagger import lstm_tagger
from benchmarks.nets.mobilenet_v2 import mobilenet_v2
from benchmarks.nets.recogniser import recogniser
from benchmarks.nets.resnet3d_18 import resnet3d_18
from benchmarks.nets.vit_tiny import vit_tiny

__all__ = ["ANY_SIZE", "WRITTEN"]

WRITTEN: Mapping[str, Callable[[int, int], onnx.ModelProto]] = {
    "mobilenet_v2": mobilenet_v2,
    "resnet3d_18": resnet3d_18,
    "dcgan": dcgan,
    "bert_base": bert_base,
    "vit_tiny": vit_tiny,
    "lstm_tagger": lstm_tagger,
    "decoder_step": decoder_step,
}
"""By name, the function that writes the network, given batch and weight seed."""

ANY_SIZE: Mapping[str, Callable[[int], onnx.ModelProto]] = {
    "bert": bert,
    "recogniser": recogniser,
    "decoder": decoder,
}
"""By name, the function that writes a network with a dynamic dimension, given the weight seed."""
