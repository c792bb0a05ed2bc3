"""Networks defined in torch, with seeded random weights, and their export to ONNX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any

import onnx

__all__ = ["NETWORKS", "as_onnx", "bert", "resnet"]

_OPSET = 17


def resnet(torch: Any, *, layers: tuple[int, ...] = (3, 4, 6, 3), width: int = 64) -> Any:
    """ResNet with bottlenecks (He et al., 2015), stride in the 3x3, as resnet50 is trained."""
    nn, base = torch.nn, torch.nn.Module

    def unit(channels: int, filters: int, side: int, stride: int = 1) -> Any:
        conv = nn.Conv2d(channels, filters, side, stride, side // 2, bias=False)
        return nn.Sequential(conv, nn.BatchNorm2d(filters))

    class Bottleneck(base):  # type: ignore[misc, valid-type]
        def __init__(self, channels: int, middle: int, stride: int) -> None:
            super().__init__()
            out = 4 * middle
            self.into = unit(channels, middle, 1)
            self.across = unit(middle, middle, 3, stride)
            self.out = unit(middle, out, 1)
            same = stride == 1 and channels == out
            self.shortcut = nn.Identity() if same else unit(channels, out, 1, stride)

        def forward(self, x: Any) -> Any:
            y = torch.relu(self.across(torch.relu(self.into(x))))
            return torch.relu(self.out(y) + self.shortcut(x))

    parts = [unit(3, width, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    channels = width
    for stage, count in enumerate(layers):
        for block in range(count):
            middle = width << stage
            parts.append(Bottleneck(channels, middle, 2 if stage and not block else 1))
            channels = 4 * middle
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


def bert(
    torch: Any, *, layers: int = 12, width: int = 768, heads: int = 12, words: int = 30522
) -> Any:
    """BERT's encoder (Devlin et al., 2019) from token ids to hidden states."""
    nn, base, functional = torch.nn, torch.nn.Module, torch.nn.functional

    class Layer(base):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            super().__init__()
            self.q, self.k, self.v, self.mix = (nn.Linear(width, width) for _ in range(4))
            self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)

        def heads_of(self, y: Any) -> Any:
            return y.view(y.shape[0], y.shape[1], heads, width // heads).transpose(1, 2)

        def attend(self, q: Any, k: Any, v: Any) -> Any:
            if not torch.onnx.is_in_onnx_export():
                return functional.scaled_dot_product_attention(q, k, v)
            scores = q @ k.transpose(2, 3) * (width // heads) ** -0.5
            return scores.softmax(-1) @ v

        def forward(self, x: Any) -> Any:
            q, k, v = (self.heads_of(part(x)) for part in (self.q, self.k, self.v))
            mixed = self.attend(q, k, v).transpose(1, 2).reshape(x.shape)
            x = self.first(x + self.mix(mixed))
            return self.second(x + self.narrow(functional.gelu(self.wide(x))))

    class Bert(base):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(words, width), nn.Embedding(512, width)
            self.norm = nn.LayerNorm(width)
            self.layers = nn.Sequential(*(Layer() for _ in range(layers)))

        def forward(self, ids: Any) -> Any:
            places = self.places.weight[: ids.shape[1]]
            return self.layers(self.norm(self.words(ids) + places))

    return Bert()


def _image(torch: Any, batch: int) -> Any:
    return torch.randn(batch, 3, 224, 224)


def _tokens(torch: Any, batch: int) -> Any:
    return torch.randint(0, 30522, (batch, 128))


NETWORKS: Mapping[str, tuple[Callable[..., Any], Callable[[Any, int], Any]]] = {
    "resnet50": (resnet, _image), "bert_base": (bert, _tokens),
}  # fmt: skip
"""By name, functions that make the module and an input of the given batch."""


def as_onnx(torch: Any, module: Any, example: Any) -> onnx.ModelProto:
    """Export *module* to ONNX: input ``x`` of the example's shape, output ``y``."""
    file = BytesIO()
    torch.onnx.export(
        module, (example,), file, dynamo=False, opset_version=_OPSET,
        input_names=["x"], output_names=["y"],
    )  # fmt: skip
    return onnx.load_from_string(file.getvalue())
