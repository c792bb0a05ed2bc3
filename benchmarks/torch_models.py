"""Time modules of torch: ``python -m benchmarks.torch_models``.

Each module runs under eager torch, inductor (also with frozen weights) and ansorpy, each in a
process of its own, in alternating bursts.  What ansorpy returns is first compared with eager.  With
``--effort quick``, its first call tunes the graphs of a module; every trial is kept in --db.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import geometric_mean

import torch
import torch.nn.functional as F
from torch import nn

from ansorpy.cli.exit_codes import exit_code
from ansorpy.config import available_cores
from ansorpy.errors import UsageError
from ansorpy.evaluation.bench.processes import Contender
from ansorpy.evaluation.bench.turns import compare
from ansorpy.evaluation.tables import Table
from ansorpy.measure.probe.disturbance import CoreProbe
from benchmarks.common.command import command_line, say
from benchmarks.common.pages import publish

__all__ = ["MODELS", "main", "open_model"]

ENGINES = ("ansorpy", "inductor", "frozen", "eager")


class _Residual(nn.Module):
    """A residual block, with a stride of two if it changes the number of channels."""

    def __init__(self, before: int, channels: int) -> None:
        super().__init__()
        stride = 1 if before == channels else 2
        self.conv_1 = nn.Conv2d(before, channels, 3, stride, 1, bias=False)
        self.conv_2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norm_1, self.norm_2 = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)
        self.past = nn.Identity() if stride == 1 else nn.Conv2d(before, channels, 1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.norm_1(self.conv_1(x)))
        return F.relu(self.past(x) + self.norm_2(self.conv_2(y)))


def resnet18() -> tuple[nn.Module, torch.Tensor]:
    """ResNet-18 on an image of 224x224."""
    sizes = (64, 64, 64, 128, 128, 256, 256, 512, 512)
    blocks = [_Residual(a, b) for a, b in zip(sizes, sizes[1:], strict=False)]
    stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU())
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))
    return nn.Sequential(stem, nn.MaxPool2d(3, 2, 1), *blocks, head), torch.randn(1, 3, 224, 224)


class _Depthwise(nn.Module):
    def __init__(self, before: int, channels: int, stride: int) -> None:
        super().__init__()
        wide = 4 * before
        self.parts = nn.Sequential(
            nn.Conv2d(before, wide, 1), nn.BatchNorm2d(wide), nn.ReLU6(),
            nn.Conv2d(wide, wide, 3, stride, 1, groups=wide), nn.BatchNorm2d(wide), nn.ReLU6(),
            nn.Conv2d(wide, channels, 1), nn.BatchNorm2d(channels),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.parts(x)
        return y + x if y.shape == x.shape else y


def depthwise() -> tuple[nn.Module, torch.Tensor]:
    """Inverted residual blocks, as of MobileNet v2, on an image of 160x160."""
    plan = [(16, 24, 2), (24, 24, 1), (24, 32, 2), (32, 32, 1), (32, 64, 2), (64, 64, 1)]
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 1000))
    blocks = [_Depthwise(*row) for row in plan]
    return nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), *blocks, head), torch.randn(1, 3, 160, 160)


def encoder() -> tuple[nn.Module, torch.Tensor]:
    """Four layers of 256 features and 4 heads, as of a small BERT, over 128 tokens."""
    layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True, activation="gelu")
    return nn.TransformerEncoder(layer, 4), torch.randn(1, 128, 256)


def mlp() -> tuple[nn.Module, torch.Tensor]:
    """Three linear layers of 512 features on a batch of 16."""
    layers = [nn.Linear(512, 512), nn.GELU(), nn.LayerNorm(512)]
    return nn.Sequential(*layers, *layers, nn.Linear(512, 10)), torch.randn(16, 512)


MODELS: dict[str, Callable[[], tuple[nn.Module, torch.Tensor]]] = {
    "resnet18": resnet18, "depthwise": depthwise, "encoder": encoder, "mlp": mlp,
}  # fmt: skip


@dataclass
class _Run:
    """A module ready to be called, as the timer takes it."""

    call: Callable[[], torch.Tensor]
    version: str = torch.__version__
    precision: str = "float32"

    def run(self) -> None:
        with torch.inference_mode():
            self.call()


def open_model(name: str, engine: str, threads: int, effort: str, db: str | None) -> _Run:
    """Compile the module *name* with *engine*; ansorpy's result is compared with eager's."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    module, x = MODELS[name]()
    module.eval()
    options = {"effort": effort, "threads": threads, "db": db}
    compiled = {
        "ansorpy": lambda: torch.compile(module, backend="ansorpy", options=options),
        "inductor": lambda: torch.compile(module),
        "frozen": lambda: torch.compile(module, options={"freezing": True}),
        "eager": lambda: module,
    }[engine]()
    with torch.inference_mode():
        torch.testing.assert_close(compiled(x), module(x), rtol=1e-3, atol=1e-3)
    return _Run(partial(compiled, x))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print milliseconds of each engine, and the ratio of the faster peer to ansorpy."""
    p = command_line("torch_models", __doc__)
    p.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(MODELS)}; default: all")
    p.add_argument("--threads", type=int, default=available_cores())
    p.add_argument("--effort", choices=("none", "quick", "full"), default="none")
    p.add_argument("--db", help="database of ansorpy's trials")
    p.add_argument("--into", type=Path, metavar="FILE", help="replace the table in a document")
    options = p.parse_args(arguments)
    return exit_code(lambda: _main(options))


def _main(options: argparse.Namespace) -> int:
    unknown = [name for name in options.names if name not in MODELS]
    if unknown:
        raise UsageError(f"there is no model {unknown[0]}", hint=f"choose from {', '.join(MODELS)}")
    rows, ratios = [], []
    for name in options.names or MODELS:
        shared = {"name": name, "threads": options.threads, "effort": options.effort,
                  "db": options.db}  # fmt: skip
        timings = compare(
            [Contender(engine, "benchmarks.torch_models:open_model", {**shared, "engine": engine})
             for engine in ENGINES],
            progress=say,
            is_disturbed=CoreProbe(options.threads).is_disturbed,
        )  # fmt: skip
        ours, *peers = (timings[engine].median_ms for engine in ENGINES)
        ratios.append(min(peers) / ours)
        cells = [f"{time:.3f}" for time in (ours, *peers)]
        rows.append((name, *cells, f"{ratios[-1]:.2f}"))
    heading = ("model", *(f"{engine} ms" for engine in ENGINES), "ratio")
    title = f"{options.threads} threads, effort {options.effort}, torch {torch.__version__}"
    rows.append(("geometric mean", *[""] * len(ENGINES), f"{geometric_mean(ratios):.2f}"))
    table = Table(title, heading, tuple(rows), frozenset(heading[1:]))
    publish([table], "benchmarks.torch_models", options.into)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
