"""A word tagger: embedding, bidirectional LSTM, one score per tag (Huang et al., 2015)."""

from __future__ import annotations

from math import sqrt

import numpy as np
import onnx

from benchmarks.zoo.builder import Builder

__all__ = ["lstm_tagger"]

LENGTH, WORDS, EMBEDDED, HIDDEN, TAGS = 64, 20000, 128, 256, 45


def lstm_tagger(batch: int, seed: int) -> onnx.ModelProto:
    """Word ids, int64 ``[64, batch]``, to scores of 45 tags per word."""
    net = Builder("lstm_tagger", seed)
    words = net.input("words", (LENGTH, batch), np.int64)
    x = net.op("Gather", net.normal("table", (WORDS, EMBEDDED), 1.0), words, axis=0)
    weights = (
        net.normal("lstm.weight", (2, 4 * HIDDEN, EMBEDDED), 1 / sqrt(EMBEDDED)),
        net.normal("lstm.recurrent", (2, 4 * HIDDEN, HIDDEN), 1 / sqrt(HIDDEN)),
        net.bias("lstm.bias", 2, 8 * HIDDEN),
    )
    states = net.op("LSTM", x, *weights, hidden_size=HIDDEN, direction="bidirectional")
    turned = net.op("Transpose", states, perm=[0, 2, 1, 3])
    both = net.reshape(turned, LENGTH, batch, 2 * HIDDEN)
    return net.model(scores=net.linear(both, 2 * HIDDEN, TAGS))
