"""What follows from little or nothing: constants, tables, counts of words, determinants."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import helper, numpy_helper

from tests.campaigns.networks.growing import Growing

__all__ = ["GIVENS"]

_SINGLE = np.dtype(np.float32)


def constants(net: Growing) -> None:
    """Constants as nodes: a tensor, one number or several, or a shape full of one number."""
    way = net.count(0, 3)
    if way == 0:
        held = numpy_helper.from_array(net.normal(*net.shape(0, 2)).astype(_SINGLE))
        made = net.add("Constant", dtype=_SINGLE, value=held)
    elif way == 1:
        made = net.add("Constant", dtype=_SINGLE, value_float=float(net.normal()))
    elif way == 2:
        numbers = [float(n) for n in net.normal(net.count(1, 5))]
        made = net.add("Constant", dtype=_SINGLE, value_floats=numbers)
    else:
        number = net.rng.integers(1, 5, 1).astype(net.one_of([np.float32, np.int64, np.int32]))
        value = numpy_helper.from_array(number)
        made = net.add("ConstantOfShape", net.ints(*net.shape(1, 3)), dtype=_SINGLE, value=value)
    net.add(net.one_of(["Neg", "Abs"]), made)


def tables(net: Growing) -> None:
    """Weights by which frequencies are heard."""
    length = net.one_of([8, 16, 31])
    numbers = [net.constant(np.asarray(n)) for n in (net.count(2, 6), length, 8000)]
    edges = [net.sure(np.asarray(n, _SINGLE)) for n in (0.0, 4000.0)]
    code = helper.np_dtype_to_tensor_dtype(_SINGLE)
    net.add("MelWeightMatrix", *numbers, *edges, output_datatype=code, dtype=_SINGLE)


def words(net: Growing) -> None:
    """How often words of numbers, alone and in a row, occur in texts."""
    shape = [net.count(2, 9)] if net.chance() else [net.count(1, 4), net.count(2, 9)]
    x = net.new_input(shape, net.one_of([np.int32, np.int64]))
    mode = net.one_of(["TF", "IDF", "TFIDF"])
    weights = [float(n) for n in net.uniform(0.5, 1.5, 6)]
    net.add(
        "TfIdfVectorizer", x, mode=mode, min_gram_length=1, max_gram_length=2, dtype=_SINGLE,
        max_skip_count=net.count(0, 2), ngram_counts=[0, 4], ngram_indexes=[0, 1, 2, 3, 4, 5],
        pool_int64s=[-2, 0, 3, 5, 1, 2, 0, 0], weights=weights,
    )  # fmt: skip


def determinants(net: Growing) -> None:
    n = net.count(1, 6)
    more = [net.count(1, 4)] if net.chance() else []
    net.add("Det", net.new_input([*more, n, n]))


def plain_casts(net: Growing) -> None:
    """Integers of all widths as each other, and flags as integers."""
    kinds = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
    x = net.pick_flags() if net.chance(0.3) else net.new_input(net.shape(), net.one_of(kinds))
    x = net.add("Abs", x) if x.dtype.kind == "i" else x
    to = np.dtype(net.one_of(kinds))
    net.add("Cast", x, dtype=to, to=helper.np_dtype_to_tensor_dtype(to))


GIVENS: dict[Callable[[Growing], None], float] = {
    constants: 0.4, tables: 0.2, words: 0.3, determinants: 0.3, plain_casts: 0.4
}  # fmt: skip
