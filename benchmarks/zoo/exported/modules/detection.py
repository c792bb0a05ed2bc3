"""Detectors, from the image to boxes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torchvision
from torch import Tensor, nn
from torchvision.models.detection import FasterRCNN, RetinaNet
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.models.detection.backbone_utils import BackboneWithFPN
from torchvision.ops import MultiScaleRoIAlign, batched_nms

__all__ = ["MODULES"]


def _conv(ci: int, co: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(ci, co, 3, stride, 1), nn.BatchNorm2d(co), nn.SiLU())


class _Yolo(nn.Module):
    """Boxes of each cell of two grids; the best by score, then without overlaps of a class."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(_conv(3, 8, 2), _conv(8, 16, 2), _conv(16, 24, 2))
        self.second = _conv(24, 32, 2)
        self.heads = nn.ModuleList(nn.Conv2d(width, 5 + 6, 1) for width in (24, 32))

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        fine = self.first(image)
        found = []
        for x, head, stride in zip((fine, self.second(fine)), self.heads, (8, 16), strict=True):
            y = head(x)
            rows, columns = y.shape[2], y.shape[3]
            down, along = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
            grid = torch.stack([along, down], 0).to(y.dtype)[None]
            centre = (y[:, :2].sigmoid() + grid) * stride
            size = (y[:, 2:4].sigmoid() * 2) ** 2 * (stride * 2)
            both = torch.cat([centre - size / 2, centre + size / 2, y[:, 4:].sigmoid()], 1)
            found.append(both.flatten(2).transpose(1, 2))
        joined = torch.cat(found, 1)[0]
        scores, labels = (joined[:, 4:5] * joined[:, 5:]).max(1)
        kept = torch.nonzero(scores > 0.2)[:, 0]
        boxes, scores, labels = joined[kept, :4], scores[kept], labels[kept]
        chosen = batched_nms(boxes, scores, labels, 0.5)[:50]
        return boxes[chosen], scores[chosen], labels[chosen]


class _Found(nn.Module):
    """What one of torchvision's detectors finds in one image."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        found = self.net([image[0]])
        if isinstance(found, tuple):
            found = found[1]
        return found[0]["boxes"], found[0]["scores"], found[0]["labels"]


def _backbone() -> nn.Module:
    stages = nn.Sequential(_conv(3, 8, 4), _conv(8, 16, 2), _conv(16, 24, 2))
    return BackboneWithFPN(stages, {"1": "0", "2": "1"}, [16, 24], 16)


def _anchors() -> AnchorGenerator:
    return AnchorGenerator(((16,), (32,), (64,)), ((0.5, 1.0, 2.0),) * 3)


def _retinanet() -> nn.Module:
    return _Found(RetinaNet(
        _backbone(), 5, min_size=64, max_size=128, anchor_generator=_anchors(),
        score_thresh=0.01, topk_candidates=60, detections_per_img=30,
    ))  # fmt: skip


def _faster_rcnn() -> nn.Module:
    pooling = MultiScaleRoIAlign(["0", "1"], 7, 2)
    return _Found(FasterRCNN(
        _backbone(), 5, min_size=64, max_size=128, rpn_anchor_generator=_anchors(),
        box_roi_pool=pooling, rpn_pre_nms_top_n_test=60, rpn_post_nms_top_n_test=30,
        box_score_thresh=0.05, box_detections_per_img=20,
    ))  # fmt: skip


def _ssdlite() -> nn.Module:
    net = torchvision.models.detection.ssdlite320_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=5, detections_per_img=30,
        topk_candidates=50, score_thresh=0.05,
    )  # fmt: skip
    net.transform.min_size, net.transform.max_size = (96,), 96
    net.transform.fixed_size = (96, 96)
    return _Found(net)


MODULES: Mapping[str, Callable[[], Any]] = {
    "yolo": _Yolo,
    "retinanet": _retinanet,
    "faster_rcnn": _faster_rcnn,
    "ssdlite": _ssdlite,
}
