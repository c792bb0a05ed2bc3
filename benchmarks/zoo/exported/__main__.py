"""``python -m benchmarks.zoo.exported [NAME ...]``: export the networks and store their graphs.

It needs torch, torchvision, timm, transformers, onnxscript, scikit-learn and skl2onnx, which
nothing else does.
"""

from __future__ import annotations

import io
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from torch import nn

from benchmarks.zoo.exported.catalogue import NETWORKS, Network
from benchmarks.zoo.exported.modules import classical, detection, others, segmentation, text
from benchmarks.zoo.exported.stored import store

__all__: list[str] = []

_MODULES = {**segmentation.MODULES, **detection.MODULES, **text.MODULES, **others.MODULES}
_OPSET = 18
_FITTED = 200
"""Rows that a classical model is fitted to."""


def main(names: list[str]) -> int:
    """Export all networks, or those of *names*; the exit code is 1 if one cannot be exported."""
    torch.backends.mha.set_fastpath_enabled(False)  # onnx has no such operator
    failed = 0
    for network in NETWORKS:
        for exporter in network.exporters:
            name = f"{network.name}.{exporter}"
            if names and name not in names and network.name not in names:
                continue
            try:
                path = store(name, _exported(network, exporter))
                print(f"{name}: {path.stat().st_size / 1024:.0f} KiB", flush=True)
            except Exception:
                failed += 1
                print(f"{name}: failed\n{traceback.format_exc(limit=-3)[-1500:]}", flush=True)
    return int(bool(failed))


def _exported(network: Network, exporter: str) -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    if exporter == "sklearn":
        return _classical(network, rng)
    module = _drawn(_MODULES[network.name]())
    feeds = network.feeds(rng, network.sizes[0])
    tensors = tuple(torch.from_numpy(array) for array in feeds.values())
    names = list(feeds)
    common: dict[str, Any] = {
        "input_names": names, "output_names": list(network.outputs),
        "opset_version": _OPSET, "verbose": False,
    }  # fmt: skip
    with warnings.catch_warnings(action="ignore"), torch.no_grad():
        if exporter == "script":
            held = io.BytesIO()
            torch.onnx.export(
                module, tensors, held, dynamo=False, dynamic_axes=dict(network.dynamic), **common
            )
            return onnx.load_model_from_string(held.getvalue())
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "net.onnx")
            shapes = _dynamic_shapes(network, names)
            torch.onnx.export(module, tensors, path, dynamo=True, dynamic_shapes=shapes, **common)
            return onnx.load(path)


def _dynamic_shapes(network: Network, names: list[str]) -> Any:
    """The open axes, by place; what ``*past`` collects is one tuple."""
    dynamic = torch.export.Dim.DYNAMIC
    axes = [dict.fromkeys(network.dynamic.get(name, {}), dynamic) for name in names]
    if any(name.startswith("past_") for name in names):
        return (*axes[:3], tuple(axes[3:]))
    return tuple(axes)


def _drawn(module: nn.Module) -> nn.Module:
    """*module* for inference, with weights drawn from a seed, norms near 1 included."""
    torch.manual_seed(0)
    with torch.no_grad():
        for name, held in (*module.named_parameters(), *module.named_buffers()):
            if not held.dtype.is_floating_point:
                continue
            if name.endswith("running_var"):
                held.uniform_(0.8, 1.2)
            elif held.ndim == 1 and name.endswith(("weight", "gamma")):
                held.normal_(1.0, 0.1)
            elif held.ndim == 1 and name.endswith(("bias", "running_mean", "beta")):
                held.normal_(0.0, 0.1)
            elif isinstance(held, nn.Parameter) and held.ndim > 1:
                held.normal_(0.0, 1.2 / max(1.0, float(held[0].numel())) ** 0.5)
    return module.eval()


def _classical(network: Network, rng: np.random.Generator) -> onnx.ModelProto:
    from skl2onnx import to_onnx  # noqa: PLC0415  # loads slowly

    rows = network.feeds(rng, {"rows": _FITTED})["X"]
    model: onnx.ModelProto = to_onnx(classical.fitted(network.name, rows), rows[:1])
    return model


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
