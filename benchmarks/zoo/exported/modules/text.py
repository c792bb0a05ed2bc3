"""Language models of transformers, small."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import transformers as tf
from torch import Tensor, nn
from transformers.cache_utils import DynamicCache

__all__ = ["MODULES"]

_COMMON = {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}


class _Hidden(nn.Module):
    """The hidden states of an encoder, and what it pooled if it does."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Any:
        return tuple(self.net(input_ids, attention_mask=attention_mask, return_dict=False))


class _Plain(nn.Module):
    """torch's own encoder layers with a padding mask."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(99, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.places = nn.Embedding(64, 32)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        places = torch.arange(input_ids.shape[1], device=input_ids.device)
        x = self.words(input_ids) + self.places(places)[None]
        hidden: Tensor = self.layers(x, src_key_padding_mask=attention_mask == 0)
        return hidden


class _Cached(nn.Module):
    """A decoder that continues a cache, given and returned as tensors."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, position_ids: Tensor, *past: Tensor
    ) -> tuple[Tensor, ...]:
        cache = DynamicCache()
        for layer in range(len(past) // 2):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        found = self.net(
            input_ids, attention_mask=attention_mask, position_ids=position_ids,
            past_key_values=cache, use_cache=True,
        )  # fmt: skip
        states = [t for layer in found.past_key_values.layers for t in (layer.keys, layer.values)]
        return (found.logits, *states)


class _Translated(nn.Module):
    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, decoder_input_ids: Tensor
    ) -> Tensor:
        found: Tensor = self.net(
            input_ids, attention_mask=attention_mask, decoder_input_ids=decoder_input_ids,
            use_cache=False,
        ).logits  # fmt: skip
        return found


def _bert() -> nn.Module:
    return _Hidden(tf.BertModel(tf.BertConfig(
        **_COMMON, intermediate_size=64, max_position_embeddings=64
    )))  # fmt: skip


def _roberta() -> nn.Module:
    return _Hidden(tf.RobertaModel(tf.RobertaConfig(
        **_COMMON, intermediate_size=64, max_position_embeddings=66
    )))  # fmt: skip


def _deberta() -> nn.Module:
    return _Hidden(tf.DebertaV2Model(tf.DebertaV2Config(
        **_COMMON, intermediate_size=64, max_position_embeddings=64, relative_attention=True,
        position_buckets=16, pos_att_type=["p2c", "c2p"], norm_rel_ebd="layer_norm",
        share_att_key=True,
    )))  # fmt: skip


def _gpt2() -> nn.Module:
    return _Cached(tf.GPT2LMHeadModel(tf.GPT2Config(
        vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64
    )))  # fmt: skip


def _llama() -> nn.Module:
    return _Cached(tf.LlamaForCausalLM(tf.LlamaConfig(
        **_COMMON, num_key_value_heads=2, intermediate_size=48, max_position_embeddings=64
    )))  # fmt: skip


def _t5() -> nn.Module:
    return _Translated(tf.T5ForConditionalGeneration(tf.T5Config(
        vocab_size=99, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4,
        decoder_start_token_id=0,
    )))  # fmt: skip


def _bart() -> nn.Module:
    return _Translated(tf.BartForConditionalGeneration(tf.BartConfig(
        vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=64,
        decoder_ffn_dim=64, encoder_attention_heads=4, decoder_attention_heads=4,
        max_position_embeddings=64,
    )))  # fmt: skip


class _Experts(nn.Module):
    """Each token goes through its best experts; all compute, and weights choose."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(32, 4, bias=False)
        self.up = nn.Parameter(torch.empty(4, 32, 48))
        self.down = nn.Parameter(torch.empty(4, 48, 32))

    def forward(self, hidden: Tensor) -> Tensor:
        batch, length, width = hidden.shape
        x = hidden.reshape(-1, width)
        weights, chosen = torch.topk(self.router(x).softmax(-1), 2, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        shares = torch.zeros(x.shape[0], 4).scatter(1, chosen, weights)
        inner = torch.einsum("td,edf->tef", x, self.up).relu()
        outer = torch.einsum("tef,efd->ted", inner, self.down)
        return (outer * shares.unsqueeze(-1)).sum(1).reshape(batch, length, width)


MODULES: Mapping[str, Callable[[], Any]] = {
    "bert": _bert,
    "roberta": _roberta,
    "deberta": _deberta,
    "plain_encoder": _Plain,
    "gpt2": _gpt2,
    "llama": _llama,
    "t5": _t5,
    "bart": _bart,
    "experts": _Experts,
}
