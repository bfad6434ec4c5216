"""Networks from transformers, by their configurations."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from sample import Sample, Select, Size, image, padding_mask, scaled, tokens
from torch import Tensor, nn
from transformers.models.efficientnet.modeling_efficientnet import EfficientNetFinalBlockLayer
from transformers.models.whisper.modeling_whisper import WhisperEncoder


def bert(size: Size) -> Sample:
    """BERT encoder with a padding mask; the tiny one has two layers."""
    options: dict[str, Any] = {}
    batch, length = 1, 128
    if size == "tiny":
        batch, length = 2, 12
        options = {
            "vocab_size": 100,
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 64,
            "max_position_embeddings": 32,
        }
    config = transformers.BertConfig(**options)
    inputs = {
        "input_ids": tokens(batch, length, config.vocab_size),
        "attention_mask": padding_mask(batch, length),
        "token_type_ids": (torch.arange(length) >= length // 2).long().repeat(batch, 1),
    }
    fields = ("last_hidden_state", "pooler_output")
    model = transformers.BertModel(config)
    return Sample(Select(model, tuple(inputs), fields), inputs, fields)


def gpt2(size: Size) -> Sample:
    """GPT-2 language model without a cache, 124M parameters."""
    options: dict[str, Any] = {}
    batch, length = 1, 64
    if size == "tiny":
        batch, length = 2, 10
        options = {
            "vocab_size": 100,
            "n_positions": 32,
            "n_embd": 32,
            "n_layer": 2,
            "n_head": 4,
            "bos_token_id": 0,
            "eos_token_id": 0,
        }
    config = transformers.GPT2Config(**options, attn_implementation="eager")
    model = transformers.GPT2LMHeadModel(config)
    inputs = {
        "input_ids": tokens(batch, length, config.vocab_size),
        "attention_mask": padding_mask(batch, length),
    }
    fields = ("logits",)
    return Sample(Select(model, tuple(inputs), fields, use_cache=False), inputs, fields)


def llama(size: Size) -> Sample:
    """Llama: rotary positions, grouped queries, RMS norm, SwiGLU.

    The full size has four layers of the width of a model of about 1B parameters
    and a smaller vocabulary.
    """
    length = 64
    options: dict[str, Any] = {
        "vocab_size": 8192,
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 4,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "max_position_embeddings": 2048,
    }
    if size == "tiny":
        length = 10
        options = {
            "vocab_size": 100,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 64,
        }
    config = transformers.LlamaConfig(**options)
    model = transformers.LlamaForCausalLM(config)
    inputs = {"input_ids": tokens(1, length, config.vocab_size)}
    fields = ("logits",)
    return Sample(Select(model, tuple(inputs), fields, use_cache=False), inputs, fields)


def vit(size: Size) -> Sample:
    """Vision transformer, base, patches of 16."""
    options: dict[str, Any] = {"num_labels": 1000}
    extent = 224
    if size == "tiny":
        extent = 32
        options = {
            "num_labels": 10,
            "patch_size": 8,
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 64,
        }
    config = transformers.ViTConfig(image_size=extent, **options)
    model = transformers.ViTForImageClassification(config)
    inputs = {"pixel_values": image(3, extent, extent)}
    fields = ("logits",)
    return Sample(Select(model, tuple(inputs), fields), inputs, fields)


def convnext(size: Size) -> Sample:
    """ConvNeXt tiny (the published name of the smallest one)."""
    options: dict[str, Any] = {"num_labels": 1000}
    extent = 224
    if size == "tiny":
        extent = 64
        options = {
            "num_labels": 10,
            "hidden_sizes": [8, 12, 16, 24],
            "depths": [1, 1, 2, 1],
        }
    config = transformers.ConvNextConfig(**options)
    model = transformers.ConvNextForImageClassification(config)
    inputs = {"pixel_values": image(3, extent, extent)}
    fields = ("logits",)
    return Sample(Select(model, tuple(inputs), fields), inputs, fields)


def efficientnet(size: Size) -> Sample:
    """EfficientNet B0, with its uneven padding and squeeze-and-excitation."""
    options: dict[str, Any] = {
        "num_labels": 1000,
        "width_coefficient": 1.0,
        "depth_coefficient": 1.0,
        "hidden_dim": 1280,
    }
    extent = 224
    if size == "tiny":
        extent = 64
        options |= {
            "num_labels": 10,
            "width_coefficient": 0.1,
            "depth_coefficient": 0.5,
            "depth_divisor": 4,
            "hidden_dim": 128,
        }
    config = transformers.EfficientNetConfig(image_size=extent, **options)
    model = transformers.EfficientNetForImageClassification(config)
    for module in model.modules():
        if isinstance(module, EfficientNetFinalBlockLayer):
            # Makes up for the gate before it, except at the end of a residual branch;
            # wider layers average the gates out and need less of that.
            gain = 0.5 if module.apply_dropout else 1.5 if size == "tiny" else 1.0
            scaled(module.project_bn, 0.7 * gain, 1.4 * gain)
    inputs = {"pixel_values": image(3, extent, extent)}
    fields = ("logits",)
    return Sample(Select(model, tuple(inputs), fields), inputs, fields)


def segformer(size: Size) -> Sample:
    """SegFormer B0 for semantic segmentation."""
    options: dict[str, Any] = {"num_labels": 150}
    extent = 512
    if size == "tiny":
        extent = 64
        options = {
            "num_labels": 5,
            "hidden_sizes": [8, 8, 16, 24],
            "num_attention_heads": [1, 2, 4, 4],
            "depths": [1, 1, 1, 1],
            "mlp_ratios": [2, 2, 2, 2],
            "decoder_hidden_size": 16,
        }
    config = transformers.SegformerConfig(**options)
    model = transformers.SegformerForSemanticSegmentation(config)
    inputs = {"pixel_values": image(3, extent, extent)}
    fields = ("logits",)
    return Sample(Select(model, tuple(inputs), fields), inputs, fields)


def whisper_encoder(size: Size) -> Sample:
    """Encoder of Whisper tiny over 30 seconds of mel features."""
    options: dict[str, Any] = {"d_model": 384, "encoder_layers": 4}
    options |= {"encoder_attention_heads": 6, "encoder_ffn_dim": 1536}
    if size == "tiny":
        options = {
            "num_mel_bins": 16,
            "max_source_positions": 20,
            "d_model": 32,
            "encoder_layers": 2,
            "encoder_attention_heads": 4,
            "encoder_ffn_dim": 64,
        }
    config = transformers.WhisperConfig(**options)
    model = WhisperEncoder(config)
    frames = 2 * config.max_source_positions
    inputs = {"input_features": torch.randn(1, config.num_mel_bins, frames)}
    fields = ("last_hidden_state",)
    return Sample(Select(model, tuple(inputs), fields), inputs, fields)


def minilm(size: Size) -> Sample:
    """A BERT without segments in the dimensions of MiniLM: 6 layers of width 384."""
    options: dict[str, Any] = {
        "hidden_size": 384,
        "num_hidden_layers": 6,
        "num_attention_heads": 12,
        "intermediate_size": 1536,
    }
    batch, length = 2, 12
    if size == "tiny":
        options = {
            "vocab_size": 100,
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 64,
        }
    config = transformers.BertConfig(**options)
    inputs = {
        "input_ids": tokens(batch, length, config.vocab_size),
        "attention_mask": padding_mask(batch, length),
    }
    fields = ("last_hidden_state", "pooler_output")
    model = transformers.BertModel(config)
    return Sample(Select(model, tuple(inputs), fields), inputs, fields)


class CachedDecoder(nn.Module):
    """A language model whose keys and values of the past are inputs, and outputs with those of the new tokens behind them.

    Its inputs are the new tokens, then key and value of each layer. Positions go on where the past ends, and a token sees the past and
    what is not behind it.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
        cache = transformers.DynamicCache(list(zip(past[::2], past[1::2], strict=True)))
        result = self.model(input_ids=input_ids, past_key_values=cache, use_cache=True)
        return (result.logits, *(tensor for layer in result.past_key_values.layers for tensor in (layer.keys, layer.values)))


def cached_llama(size: Size) -> Sample:
    """Llama with a growing cache; the full one has 8 layers of width 1024 and about 106M parameters, the large one 16 of width 2048 and
    about 1.1G."""
    options: dict[str, Any] = {
        "vocab_size": 8192,
        "hidden_size": 1024,
        "intermediate_size": 2816,
        "num_hidden_layers": 8,
        "num_attention_heads": 16,
        "num_key_value_heads": 4,
        "max_position_embeddings": 4096,
    }
    if size == "tiny":
        options = {
            "vocab_size": 100,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 4096,
        }
    elif size == "large":
        options |= {
            "vocab_size": 32000,
            "hidden_size": 2048,
            "intermediate_size": 8192,
            "num_hidden_layers": 16,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
        }
    batch, length, past = 2, 3, 7
    config = transformers.LlamaConfig(**options)
    names = [f"{layer}.{part}" for layer in range(config.num_hidden_layers) for part in ("key", "value")]
    inputs = {"input_ids": tokens(batch, length, config.vocab_size)}
    for name in names:
        inputs[f"past.{name}"] = torch.randn(batch, config.num_key_value_heads, past, config.head_dim)
    outputs = ("logits", *(f"present.{name}" for name in names))
    return Sample(CachedDecoder(transformers.LlamaForCausalLM(config)), inputs, outputs)
