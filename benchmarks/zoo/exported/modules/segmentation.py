"""Networks that classify every pixel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torchvision
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["MODULES"]


def _twice(ci: int, co: int) -> nn.Sequential:
    layers = [nn.Conv2d(ci, co, 3, padding=1, bias=False), nn.BatchNorm2d(co), nn.ReLU()]
    layers += [nn.Conv2d(co, co, 3, padding=1, bias=False), nn.BatchNorm2d(co), nn.ReLU()]
    return nn.Sequential(*layers)


class _UNet(nn.Module):
    """A U-Net (Ronneberger et al., 2015) whose way up resizes and pads to what it joins."""

    def __init__(self) -> None:
        super().__init__()
        widths = (8, 16, 24)
        self.down = nn.ModuleList(_twice(a, b) for a, b in zip((3, *widths), widths, strict=False))
        self.up = nn.ModuleList(_twice(a + b, b) for a, b in ((24, 16), (16, 8)))
        self.head = nn.Conv2d(8, 5, 1)

    def forward(self, image: Tensor) -> Tensor:
        kept, x = [], image
        for number, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if number else x)
            kept.append(x)
        for block, other in zip(self.up, kept[-2::-1], strict=True):
            x = F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=True)
            rows, columns = other.shape[2] - x.shape[2], other.shape[3] - x.shape[3]
            x = F.pad(x, [columns // 2, columns - columns // 2, rows // 2, rows - rows // 2])
            x = block(torch.cat([other, x], 1))
        return self.head(x)


class _Fpn(nn.Module):
    """A feature pyramid whose levels are resized to each other's sizes, and to the image's."""

    def __init__(self) -> None:
        super().__init__()
        widths = (8, 16, 24)
        self.stages = nn.ModuleList(
            nn.Sequential(nn.Conv2d(a, b, 3, 2, 1), nn.GroupNorm(4, b), nn.SiLU())
            for a, b in zip((3, *widths), widths, strict=False)
        )
        self.lateral = nn.ModuleList(nn.Conv2d(w, 12, 1) for w in widths)
        self.pooled = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Conv2d(24, 5, 3, padding=1)

    def forward(self, image: Tensor) -> Tensor:
        levels, x = [], image
        for stage in self.stages:
            x = stage(x)
            levels.append(x)
        y = self.lateral[-1](levels[-1])
        context = self.pooled(y)
        for lateral, level in zip(list(self.lateral)[-2::-1], levels[-2::-1], strict=True):
            y = lateral(level) + F.interpolate(y, size=level.shape[-2:], mode="nearest")
        context = F.interpolate(context, size=y.shape[-2:], mode="bilinear", align_corners=False)
        masks = self.head(torch.cat([y, context], 1))
        masks = F.interpolate(masks, size=image.shape[-2:], mode="bicubic", align_corners=False)
        return masks.softmax(1)


class _Out(nn.Module):
    """The masks of one of torchvision's networks."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, image: Tensor) -> Tensor:
        found: Tensor = self.net(image)["out"]
        return found


def _lraspp() -> nn.Module:
    return _Out(torchvision.models.segmentation.lraspp_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=5
    ))  # fmt: skip


def _deeplab() -> nn.Module:
    backbone = torchvision.models._utils.IntermediateLayerGetter(
        nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(),
        ),
        {"5": "out"},
    )  # fmt: skip
    models = torchvision.models.segmentation.deeplabv3
    return _Out(models.DeepLabV3(backbone, models.DeepLabHead(32, 5, (6, 12))))


MODULES: Mapping[str, Callable[[], Any]] = {
    "unet": _UNet,
    "fpn": _Fpn,
    "lraspp": _lraspp,
    "deeplab": _deeplab,
}
