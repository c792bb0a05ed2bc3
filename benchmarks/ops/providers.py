"""Providers of operators: our own programs, and the packages that bring vendors' kernels.

On a GPU, ``benchmarks.cuda`` measures the same operators beside cuBLAS and cuDNN, through torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec

from benchmarks.common.cells import OURS

__all__ = ["PEERS", "PROVIDERS", "Provider", "installed_peers"]


@dataclass(frozen=True)
class Provider:
    """A source of implementations of an operator.

    Args:
        factory: What :mod:`ansorpy.evaluation.bench` calls in a process of its own.
        library: Whose kernels it runs.
        arguments: Arguments of the factory besides those of the case.
    """

    factory: str
    library: str
    arguments: Mapping[str, str] = field(default_factory=dict)


PROVIDERS: dict[str, Provider] = {
    OURS: Provider("benchmarks.ops.engines:open_ours", "generated for the case"),
    "onnxruntime": Provider("benchmarks.ops.engines:open_onnx", "MLAS", {"engine": "onnxruntime"}),
    "openvino": Provider(
        "benchmarks.ops.engines:open_onnx", "oneDNN, with packed constants", {"engine": "openvino"}
    ),
    "torch": Provider("benchmarks.ops.engines:open_torch", "oneDNN and MKL"),
}
"""By name, which is also the name of its package."""

PEERS = tuple(name for name in PROVIDERS if name != OURS)


def installed_peers() -> list[str]:
    """The providers besides ours whose package is installed."""
    return [name for name in PEERS if find_spec(name) is not None]
