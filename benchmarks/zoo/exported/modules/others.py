"""Speech encoders, transformers on images, a block of a diffusion network, a tagger."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import timm
import torch
import torchvision
import transformers as tf
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

__all__ = ["MODULES"]


class _Spectrum(nn.Module):
    """Log power in bands, from the short-time Fourier transform of a wave."""

    def __init__(self, bands: int) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(128))
        self.register_buffer("bands", torch.rand(bands, 65) / 65)

    def forward(self, wave: Tensor) -> Tensor:
        found = torch.stft(
            wave, 128, hop_length=40, window=self.window, center=True, return_complex=False
        )
        power = found.pow(2).sum(-1)
        return torch.log(torch.clamp(self.bands @ power, min=1e-5))


class _Conformer(nn.Module):
    """A spectrum, then blocks of attention and convolution (Gulati et al., 2020)."""

    def __init__(self) -> None:
        super().__init__()
        self.spectrum = _Spectrum(20)
        self.norm = nn.BatchNorm1d(20)
        self.shrink = nn.Conv1d(20, 32, 3, 2, 1)
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
        self.before, self.between = nn.LayerNorm(32), nn.LayerNorm(32)
        self.wide = nn.Conv1d(32, 64, 1)
        self.along = nn.Conv1d(32, 32, 7, padding=3, groups=32)
        self.after = nn.BatchNorm1d(32)

    def forward(self, wave: Tensor) -> Tensor:
        x = self.shrink(self.norm(self.spectrum(wave))).transpose(1, 2)
        y = self.before(x)
        parts = self.qkv(y).unflatten(-1, (3, 4, 8)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(*parts.unbind(0))
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        y = F.glu(self.wide(self.between(x).transpose(1, 2)), dim=1)
        y = F.silu(self.after(self.along(y)))
        return x + y.transpose(1, 2)


def _wav2vec2() -> nn.Module:
    return _Speech(tf.Wav2Vec2Model(tf.Wav2Vec2Config(
        vocab_size=32, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=64, conv_dim=(16, 16, 16), conv_stride=(5, 4, 2), conv_kernel=(10, 4, 3),
        num_feat_extract_layers=3, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4,
    )))  # fmt: skip


class _Speech(nn.Module):
    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, wave: Tensor) -> Tensor:
        found: Tensor = self.net(wave).last_hidden_state
        return found


class _Whisper(nn.Module):
    """Whisper's encoder with its features in the graph."""

    def __init__(self) -> None:
        super().__init__()
        self.spectrum = _Spectrum(16)
        self.encoder = tf.models.whisper.modeling_whisper.WhisperEncoder(tf.WhisperConfig(
            d_model=32, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=64,
            num_mel_bins=16, max_source_positions=40, decoder_layers=1,
        ))  # fmt: skip

    def forward(self, wave: Tensor) -> Tensor:
        power = self.spectrum(wave)[..., :-1] / math.log(10)
        power = torch.maximum(power, power.amax(dim=(1, 2), keepdim=True) - 8.0)
        found: Tensor = self.encoder((power + 4.0) / 4.0).last_hidden_state
        return found


def _swin(block: Any = None) -> nn.Module:
    models = torchvision.models.swin_transformer
    more = {"block": block, "downsample_layer": models.PatchMergingV2} if block else {}
    return models.SwinTransformer(
        patch_size=[4, 4], embed_dim=24, depths=[2, 2], num_heads=[2, 4], window_size=[4, 4],
        num_classes=10, **more,
    )  # fmt: skip


def _swin_v2() -> nn.Module:
    return _swin(torchvision.models.swin_transformer.SwinTransformerBlockV2)


def _timm_swin() -> nn.Module:
    return timm.models.swin_transformer.SwinTransformer(
        img_size=64, patch_size=4, embed_dim=24, depths=(2, 2), num_heads=(2, 4), window_size=4,
        num_classes=10,
    )  # fmt: skip


def _timm_vit() -> nn.Module:
    return timm.models.vision_transformer.VisionTransformer(
        img_size=64, patch_size=16, embed_dim=32, depth=2, num_heads=4, num_classes=10
    )


class _Residual(nn.Module):
    def __init__(self, ci: int, co: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.GroupNorm(4, ci), nn.SiLU(), nn.Conv2d(ci, co, 3, padding=1))
        self.time = nn.Linear(32, co)
        self.last = nn.Sequential(nn.GroupNorm(4, co), nn.SiLU(), nn.Conv2d(co, co, 3, padding=1))
        self.skip = nn.Conv2d(ci, co, 1)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        y = self.first(x) + self.time(F.silu(time))[:, :, None, None]
        return self.skip(x) + self.last(y)


class _Crossed(nn.Module):
    """Self-attention over pixels, attention to a text, and a gated layer."""

    def __init__(self, width: int, text: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(4, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.q = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(2))
        self.kv = nn.ModuleList(nn.Linear(w, 2 * width, bias=False) for w in (width, text))
        self.gated, self.out = nn.Linear(width, 4 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        batch, width, rows, columns = x.shape
        y = self.norm(x).permute(0, 2, 3, 1).reshape(batch, rows * columns, width)
        for number in range(2):
            z = self.norms[number](y)
            k, v = self.kv[number](context if number else z).chunk(2, -1)
            parts = (t.reshape(batch, -1, 4, width // 4).transpose(1, 2)
                     for t in (self.q[number](z), k, v))  # fmt: skip
            mixed = F.scaled_dot_product_attention(*parts)
            y = y + mixed.transpose(1, 2).reshape(batch, -1, width)
        a, b = self.gated(self.norms[2](y)).chunk(2, -1)
        y = y + self.out(a * F.gelu(b))
        return x + y.reshape(batch, rows, columns, width).permute(0, 3, 1, 2)


class _Diffusion(nn.Module):
    """One level of a denoising U-Net that a text conditions (Rombach et al., 2022)."""

    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 32))
        self.entry = nn.Conv2d(4, 16, 3, padding=1)
        self.above = _Residual(16, 16)
        self.shrink = nn.Conv2d(16, 16, 3, 2, 1)
        self.below, self.cross = _Residual(16, 32), _Crossed(32, 24)
        self.grow = nn.Conv2d(32, 32, 3, padding=1)
        self.joined = _Residual(48, 16)
        self.exit = nn.Sequential(nn.GroupNorm(4, 16), nn.SiLU(), nn.Conv2d(16, 4, 3, padding=1))

    def forward(self, latent: Tensor, timestep: Tensor, context: Tensor) -> Tensor:
        rates = torch.exp(-math.log(10000.0) * torch.arange(8, dtype=torch.float32) / 8)
        angles = timestep[:, None].float() * rates[None]
        time = self.time(torch.cat([angles.cos(), angles.sin()], -1))
        above = self.above(self.entry(latent), time)
        x = self.cross(self.below(self.shrink(above), time), context)
        x = self.grow(F.interpolate(x, scale_factor=2.0, mode="nearest"))
        return self.exit(self.joined(torch.cat([x, above], 1), time))


class _Tagger(nn.Module):
    """Two LSTM layers in both directions over sentences of given lengths (Huang et al., 2015)."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 16)
        self.lstm = nn.LSTM(16, 12, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(24, 7)

    def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
        packed = pack_padded_sequence(self.words(words), lengths, batch_first=True)
        states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.head(states)


MODULES: Mapping[str, Callable[[], Any]] = {
    "conformer": _Conformer,
    "wav2vec2": _wav2vec2,
    "whisper": _Whisper,
    "swin": _swin,
    "swin_any": _swin,
    "swin_v2": _swin_v2,
    "timm_swin": _timm_swin,
    "timm_vit": _timm_vit,
    "diffusion": _Diffusion,
    "tagger": _Tagger,
}
