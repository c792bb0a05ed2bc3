"""All cases: the operator suite of the Ansor paper, operators of a transformer, and odd shapes."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatch
from functools import cache

from ansorpy.errors import UsageError
from benchmarks.ops.case import Case
from benchmarks.ops.families.attention import Attention, TransposedBatchMatmul
from benchmarks.ops.families.capsule import CapsuleConv2d
from benchmarks.ops.families.conv1d import Conv1d
from benchmarks.ops.families.conv2d import Conv2d
from benchmarks.ops.families.conv3d import Conv3d
from benchmarks.ops.families.conv_layer import ConvLayer
from benchmarks.ops.families.depthwise import DepthwiseConv2d
from benchmarks.ops.families.elementwise import Gelu, Softmax
from benchmarks.ops.families.grouped import GroupedConv2d
from benchmarks.ops.families.matmul import Matmul
from benchmarks.ops.families.norms import LayerNorm, MatrixNorm
from benchmarks.ops.families.projection import Projection
from benchmarks.ops.families.transposed import TransposedConv2d

__all__ = ["CALL", "RESNET_CONV", "SMALL", "case_named", "cases", "is_case", "matching"]

CALL = Gelu("CALL", (16,))
"""A case with almost no work, to measure the cost of a call from Python; not part of the suite."""

RESNET_CONV = Conv2d("C2D", (56, 56), 64, 64, 3, 1, 1)
"""A convolution that other systems publish times of; not part of the suite."""

SMALL: tuple[Case, ...] = (
    Conv1d("C1D", (23,), 5, 9, 3, 2, 1),
    Conv2d("C2D", (9, 9), 7, 11, 3, 1, 1),
    Conv3d("C3D", (4, 7, 7), 3, 5, 3, 1, 1),
    GroupedConv2d("GRP", (8, 8), 8, 12, 3, 2, 1, parts=4),
    Conv2d("DIL", (11, 11), 3, 8, 3, 1, 2, dilation=2),
    DepthwiseConv2d("DEP", (9, 9), 13, 13, 3, 2, 1),
    TransposedConv2d("T2D", (5, 5), 6, 7, 4, 2, 1),
    CapsuleConv2d("CAP", (4, 4), 3, 5, 3, 1, 1),
    ConvLayer("ConvLayer", (9, 9), 5, 8, 3, 1, 1),
    Matmul("GMM", 17, 23, 31, 2),
    TransposedBatchMatmul("TBG", 13, 3, 8),
    MatrixNorm("NRM", 19, 27),
    Projection("PROJ", 7, 24, 33),
    Attention("ATT", 12, 2, 8),
    Softmax("SOFTMAX", (3, 5, 17)),
    LayerNorm("LN", 11, 37),
    Gelu("GELU", (9, 21)),
)
"""A case of every family with small extents that few tiles divide; not part of the suite."""

# Image side, input and output channels, window, stride, zero padding.
IMAGES = ((224, 3, 64, 7, 2, 3), (56, 64, 64, 1, 1, 0), (14, 256, 256, 3, 1, 1),
          (7, 512, 512, 3, 1, 1))  # fmt: skip


def _convolutions() -> list[Case]:
    found: list[Case] = []
    for length, *rest in ((256, 64, 128, 3, 2, 1), (128, 128, 256, 1, 2, 0),
                          (64, 256, 256, 5, 1, 2), (32, 512, 512, 3, 1, 1)):  # fmt: skip
        found.append(Conv1d("C1D", (length,), *rest))
    for batch in (1, 16):
        found += [Conv2d("C2D", (s, s), *rest, batch=batch) for s, *rest in IMAGES]
    found += [Conv3d("C3D", (16, s, s), *rest) for s, *rest in IMAGES]
    grouped = ((56, 64, 128, 3, 2, 1), *IMAGES[1:])
    found += [GroupedConv2d("GRP", (s, s), *rest, parts=4) for s, *rest in grouped]
    found += [Conv2d("DIL", (s, s), *rest, dilation=2) for s, *rest in IMAGES]
    depthwise = ((112, 32, 1), (112, 64, 2), (14, 512, 2), (7, 1024, 1))
    for batch in (1, 16):
        found += [
            DepthwiseConv2d("DEP", (s, s), c, c, 3, stride, 1, batch=batch)
            for s, c, stride in depthwise
        ]
    for s, ci, co in ((4, 512, 256), (8, 256, 128), (16, 128, 64), (32, 64, 3)):
        found.append(TransposedConv2d("T2D", (s, s), ci, co, 4, 2, 1))
    for s, ci, co, stride in ((16, 32, 32, 2), (8, 32, 32, 1), (16, 8, 16, 2), (8, 16, 16, 1)):
        found.append(CapsuleConv2d("CAP", (s, s), ci, co, 3, stride, 1))
    layers = ((224, 3, 64, 7, 2, 3), (56, 64, 128, 3, 2, 1), (28, 128, 256, 1, 2, 0),
              (7, 512, 512, 3, 1, 1))  # fmt: skip
    found += [ConvLayer("ConvLayer", (s, s), *rest) for s, *rest in layers]
    return found


def _products() -> list[Case]:
    found: list[Case] = []
    for batch in (1, 16):
        for n, m, k in ((128, 128, 128), (512, 32, 512), (512, 512, 512), (1024, 1024, 1024)):
            found.append(Matmul("GMM", n, m, k, batch))
        for tokens, heads, dim in ((128, 12, 64), (128, 16, 64), (64, 12, 128), (128, 12, 128)):
            found.append(TransposedBatchMatmul("TBG", tokens, heads, dim, batch))
    for n, m in ((256, 256), (512, 512), (1024, 1024), (4096, 1024)):
        found.append(MatrixNorm("NRM", n, m))
    return found


def _transformer() -> list[Case]:
    found: list[Case] = [
        Projection("PROJ", tokens, ci, co)
        for tokens in (1, 128, 512)
        for ci, co in ((768, 768), (768, 3072), (3072, 768))
    ]
    return [
        *found,
        Attention("ATT", 128, 12, 64),
        Softmax("SOFTMAX", (12, 128, 128)),
        LayerNorm("LN", 128, 768),
        Gelu("GELU", (128, 3072)),
    ]


def _odd() -> list[Case]:
    """Sizes without useful divisors: detection and classification heads, and primes."""
    return [
        Conv2d("ODD.C2D", (13, 13), 192, 384, 3, 1, 1),
        Conv2d("ODD.C2D", (13, 13), 384, 256, 3, 1, 1),
        Conv2d("ODD.C2D", (7, 7), 160, 960, 1),
        Conv2d("ODD.C2D", (19, 19), 67, 71, 3, 1, 1),
        DepthwiseConv2d("ODD.DEP", (7, 7), 960, 960, 3, 1, 1),
        DepthwiseConv2d("ODD.DEP", (13, 13), 131, 131, 5, 1, 2),
        TransposedConv2d("ODD.T2D", (13, 13), 61, 67, 3, 2, 1),
        Matmul("ODD.GMM", 127, 127, 127),
        Matmul("ODD.GMM", 509, 509, 509),
        Projection("ODD.PROJ", 1, 2048, 1000),
        Projection("ODD.PROJ", 16, 1280, 1000),
        Softmax("ODD.SOFTMAX", (64, 1000)),
        LayerNorm("ODD.LN", 197, 1021),
        MatrixNorm("ODD.NRM", 509, 1021),
    ]


@cache
def cases() -> tuple[Case, ...]:
    """Every case, by family."""
    return (*_convolutions(), *_products(), *_transformer(), *_odd())


def matching(patterns: Sequence[str]) -> list[Case]:
    """Cases whose name or family matches one of *patterns* (default all), in the suite's order.

    Raises:
        UsageError: A pattern matches no case.
    """
    for pattern in patterns:
        if not any(_fits(case, pattern) for case in cases()):
            raise UsageError(f"no case fits {pattern!r}", hint="--list prints their names")
    return [c for c in cases() if not patterns or any(_fits(c, p) for p in patterns)]


def case_named(name: str) -> Case:
    """The case with exactly that *name*, including those that are not part of the suite."""
    return next(case for case in _named() if case.name == name)


def is_case(name: str) -> bool:
    """Whether :func:`case_named` knows *name*."""
    return any(case.name == name for case in _named())


def _named() -> tuple[Case, ...]:
    return (*cases(), CALL, RESNET_CONV)


def _fits(case: Case, pattern: str) -> bool:
    wanted = pattern.lower()
    return fnmatch(case.name.lower(), wanted) or case.family.split(".")[0].lower() == wanted
