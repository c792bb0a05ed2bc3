"""Families of operators: each function appends nodes of one kind to a network.

Shapes and attributes are solved for the operands that a function picks, so its nodes are valid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.campaigns.networks.families.attentions import ATTENTIONS
from tests.campaigns.networks.families.bits import BITS
from tests.campaigns.networks.families.classical import CLASSICAL
from tests.campaigns.networks.families.control import CONTROL
from tests.campaigns.networks.families.elementwise import ELEMENTWISE
from tests.campaigns.networks.families.further import FURTHER
from tests.campaigns.networks.families.givens import GIVENS
from tests.campaigns.networks.families.images import IMAGES
from tests.campaigns.networks.families.microsoft import MICROSOFT
from tests.campaigns.networks.families.movement import MOVEMENT
from tests.campaigns.networks.families.narrow import NARROW
from tests.campaigns.networks.families.patterns import PATTERNS
from tests.campaigns.networks.families.products import PRODUCTS
from tests.campaigns.networks.families.quantized import QUANTIZED
from tests.campaigns.networks.families.random_numbers import RANDOM
from tests.campaigns.networks.families.recurrent import RECURRENT
from tests.campaigns.networks.families.reductions import REDUCTIONS
from tests.campaigns.networks.families.scatters import SCATTERS
from tests.campaigns.networks.families.selection import SELECTION
from tests.campaigns.networks.families.sequences import SEQUENCES
from tests.campaigns.networks.families.training import TRAINING
from tests.campaigns.networks.growing import Growing

__all__ = ["FAMILIES", "NOT_DRAWN"]

FAMILIES: dict[Callable[[Growing], None], float] = {
    **ATTENTIONS, **BITS, **CLASSICAL, **CONTROL, **ELEMENTWISE, **FURTHER, **GIVENS, **IMAGES,
    **MICROSOFT, **MOVEMENT, **NARROW, **PATTERNS, **PRODUCTS, **QUANTIZED, **RANDOM, **RECURRENT,
    **REDUCTIONS, **SCATTERS, **SELECTION, **SEQUENCES, **TRAINING,
}  # fmt: skip
"""The functions, and how often each is drawn relative to the others."""

_ONLY_ON_GPUS = (
    "BiasAdd", "BiasSoftmax", "BiasSplitGelu", "ComplexMul", "ComplexMulConj",
    "FusedMatMulActivation", "GatedAdd", "GatedRMSNorm", "GemmFastGelu", "GroupNorm",
    "LinearAttentionGate", "NhwcConv", "NhwcFusedConv", "QLinearReduceMean", "RelativePositionBias",
    "SkipGroupNorm", "TorchEmbedding",
)  # fmt: skip
_AS_ONNX_HAS_IT = (
    "CausalConvWithState", "GatherND", "GridSample", "LinearAttention", "Pad", "Range", "Trilu",
    "Unique",
)  # fmt: skip

NOT_DRAWN: Mapping[str, str] = {
    "Scatter": "operator sets from 11 on have ScatterElements",
    "Upsample": "operator sets from 10 on have Resize",
    "SimplifiedLayerNormalization": "onnx's checker does not know it",
    "com.microsoft.SimplifiedLayerNormalization": "onnxruntime has no such kernel",
    "com.microsoft.DynamicQuantizeLSTM": "rounding decides its states, step after step",
    "com.microsoft.TransposeMatMul": "FusedMatMul, as it was called before",
    "com.microsoft.MRotaryEmbedding": "RotaryEmbedding is drawn, whose rotations it has",
    **{f"com.microsoft.{n}": "onnxruntime has no such kernel for CPUs" for n in _ONLY_ON_GPUS},
    **{f"com.microsoft.{name}": f"onnx's {name} is drawn" for name in _AS_ONNX_HAS_IT},
}
"""Operators that no family draws, and why; tests of importers compare them."""
