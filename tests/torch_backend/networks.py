"""Small networks of the kinds that users compile, written plainly."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

__all__ = ["Attention", "Decoder", "DepthwiseBlock", "Encoder", "ResidualBlock", "UNet", "ViT"]


class ResidualBlock(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv_1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm_1 = nn.BatchNorm2d(channels)
        self.conv_2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm_2 = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.norm_1(self.conv_1(x)))
        return F.relu(x + self.norm_2(self.conv_2(y)))


class DepthwiseBlock(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.deep = nn.Conv2d(channels, channels, 3, 2, 1, groups=channels)
        self.wide = nn.Conv2d(channels, 2 * channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.hardswish(self.wide(F.relu6(self.deep(x))))
        return F.adaptive_avg_pool2d(y, 1).flatten(1)


class Attention(nn.Module):
    def __init__(self, size: int, heads: int, causal: bool = False) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, rows, size = x.shape
        parts = self.qkv(x).view(batch, rows, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(*parts.unbind(0), is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(batch, rows, size))


class Layer(nn.Module):
    def __init__(self, size: int, heads: int, causal: bool = False) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.attention = Attention(size, heads, causal)
        self.mlp = nn.Sequential(nn.Linear(size, 2 * size), nn.GELU(), nn.Linear(2 * size, size))
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.dropout(self.attention(self.norm_1(x)))
        return x + self.dropout(self.mlp(self.norm_2(x)))


class ViT(nn.Module):
    def __init__(self, size: int = 16) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, size, 4, 4)
        self.token = nn.Parameter(torch.randn(1, 1, size))
        self.places = nn.Parameter(torch.randn(1, 17, size))
        self.layer, self.head = Layer(size, 2), nn.Linear(size, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.patches(x).flatten(2).transpose(1, 2)
        y = torch.cat([self.token.expand(y.shape[0], -1, -1), y], 1) + self.places
        return self.head(self.layer(y)[:, 0])


class Encoder(nn.Module):
    """As BERT: embeddings, a padding mask, and ``nn.TransformerEncoderLayer`` for the second."""

    def __init__(self, size: int = 16) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(50, size), nn.Embedding(32, size)
        self.layer = Layer(size, 2)
        self.fused = nn.TransformerEncoderLayer(size, 2, 2 * size, batch_first=True)
        self.pooler = nn.Linear(size, size)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        y = self.fused(self.layer(x)) * mask.unsqueeze(-1)
        return torch.tanh(self.pooler(y.sum(1) / mask.sum(1, keepdim=True)))


class Decoder(nn.Module):
    """As GPT, with a cache of keys and values that a call writes in place."""

    def __init__(self, size: int = 16, heads: int = 2, capacity: int = 12) -> None:
        super().__init__()
        self.heads = heads
        self.words, self.qkv = nn.Embedding(50, size), nn.Linear(size, 3 * size)
        self.head = nn.Linear(size, 50, bias=False)
        self.head.weight = self.words.weight
        self.capacity = capacity

    def forward(
        self, ids: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, place: torch.Tensor
    ) -> torch.Tensor:
        x = self.words(ids)
        q, k, v = (
            part.view(1, -1, self.heads, part.shape[-1] // self.heads).transpose(1, 2)
            for part in self.qkv(x).chunk(3, -1)
        )
        keys.index_copy_(2, place, k)
        values.index_copy_(2, place, v)
        mask = torch.arange(self.capacity) <= place.unsqueeze(-1)
        y = F.scaled_dot_product_attention(q, keys, values, mask)
        return self.head(y.transpose(1, 2).flatten(2)).argmax(-1)


class UNet(nn.Module):
    def __init__(self, channels: int = 4) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, channels, 3, 2, 1)
        self.deep = nn.Conv2d(channels, channels, 3, padding=1)
        self.up = nn.ConvTranspose2d(channels, channels, 2, 2)
        self.out = nn.Conv2d(channels + 3, 2, 1)
        self.norm = nn.GroupNorm(2, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.silu(self.norm(self.deep(F.leaky_relu(self.down(x)))))
        y = torch.cat([self.up(y), x], 1)
        return F.interpolate(self.out(y), scale_factor=2.0, mode="bilinear")
