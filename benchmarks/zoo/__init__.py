"""The networks that are measured, all with seeded random weights.

Each of the modules beside this one writes a network as ONNX; ``light`` has those of the onnx
package, ``exported`` those that exporters wrote.  ``suite`` finds them by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import onnx

from benchmarks.zoo.bert import bert_base
from benchmarks.zoo.dcgan import dcgan
from benchmarks.zoo.decoder_step import decoder_step
from benchmarks.zoo.lstm_tagger import lstm_tagger
from benchmarks.zoo.mobilenet_v2 import mobilenet_v2
from benchmarks.zoo.resnet3d_18 import resnet3d_18
from benchmarks.zoo.vit_tiny import vit_tiny

__all__ = ["WRITTEN"]

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
