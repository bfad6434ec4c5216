"""Language models of transformers, in small widths: decoders, decoders with caches, encoders, encoder-decoders."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import transformers
from inputs import Extent, Input, Symbol
from network import Architecture, Network, called
from torch import Tensor, nn

VOCABULARY = 99
SMALL = {"vocab_size": VOCABULARY, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4}
TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
GROUPED = {"num_key_value_heads": 2, "max_position_embeddings": 8192}
TEXT = {"batch": Symbol(high=16, example=2), "seq": Symbol(high=4200, example=11)}
BATCH = {"batch": Symbol(high=64, example=2)}
SHORT = TEXT | {"seq": Symbol(high=512, example=11)}
CACHED = {"batch": Symbol(high=16, example=2), "seq": Symbol(high=1100, example=3), "past": Symbol(low=0, high=4200, example=7)}


def ids(length: Extent = "seq") -> Input:
    return Input(("batch", length), "below", VOCABULARY)


def mask(kind: str, length: str = "seq") -> Input:
    return Input(("batch", length), kind)


def config_of(name: str, options: dict[str, Any]) -> Any:
    """The configuration of an architecture in small widths; an option that is None is left to the library. Experts are computed as batched
    products of gathered weights, which both exporters take."""
    given = {key: value for key, value in (SMALL | TOKENS | options).items() if value is not None}
    made = (getattr(transformers, f"{name}TextConfig", None) or getattr(transformers, f"{name}Config"))(**given)
    made._experts_implementation = "batched_mm"
    return made


def decoder(name: str, head: str = "ForCausalLM", masked: bool = True, length: Extent = "seq", **options: Any) -> Network:
    """A decoder on whole sequences, which end at the right (padding to the left). A network with a loop over tokens, which is unrolled,
    is given a `length` that is a number."""
    model = getattr(transformers, name + head)(config_of(name, options))
    inputs = {"input_ids": ids(length)} | ({"attention_mask": mask("left-padded")} if masked else {})
    return called(model, inputs, use_cache=False)


def with_cache(model: nn.Module, **inputs: Tensor) -> Any:
    """New tokens after those whose keys and values are given."""
    past = [value for name, value in inputs.items() if name.startswith("past")]
    layers = list(zip(past[::2], past[1::2], strict=True))
    given = {name: value for name, value in inputs.items() if not name.startswith("past")}
    result = model(**given, past_key_values=transformers.DynamicCache(layers), use_cache=True)
    return result.logits, [(layer.keys, layer.values) for layer in result.past_key_values.layers]


def decode(name: str, heads: int, width: int, masked: bool = True, **options: Any) -> Network:
    """A decoder that goes on from keys and values of `past` tokens, with `heads` of `width` elements."""
    config = config_of(name, options)
    inputs = {"input_ids": ids()} | ({"attention_mask": mask("left-padded", "past + seq")} if masked else {})
    for layer in range(config.num_hidden_layers):
        inputs |= {f"past.{layer}.{part}": Input(("batch", heads, "past", width)) for part in ("key", "value")}
    return called(getattr(transformers, f"{name}ForCausalLM")(config), inputs, with_cache)


def encoder(name: str, head: str = "Model", masked: bool = True, **options: Any) -> Network:
    """An encoder with padding to the right."""
    model = getattr(transformers, name + head)(config_of(name, options))
    return called(model, {"input_ids": ids()} | ({"attention_mask": mask("right-padded")} if masked else {}))


def encoder_decoder(name: str, head: str = "ForConditionalGeneration", **options: Any) -> Network:
    """All of the target at once, given the source."""
    sizes = {"d_model": 64, "vocab_size": VOCABULARY, "encoder_layers": 2, "decoder_layers": 2, "decoder_start_token_id": 1}
    sizes |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 96, "decoder_ffn_dim": 96}
    sizes |= dict.fromkeys(("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"))
    model = getattr(transformers, name + head)(config_of(name, sizes | options))
    inputs = {"input_ids": ids("source"), "attention_mask": mask("right-padded", "source"), "decoder_input_ids": ids("target")}
    return called(model, inputs, use_cache=False)


def row(build: Callable[..., Network], name: str, symbols: dict[str, Symbol] = TEXT, **options: Any) -> Architecture:
    return Architecture(partial(build, name, **options), symbols)


EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}
PAIR = {"batch": Symbol(high=8, example=2), "source": Symbol(high=2100, example=11), "target": Symbol(high=1100, example=5)}
T5 = {"num_layers": 2, "num_decoder_layers": 2, "d_kv": 16, "d_ff": 96, "num_heads": 4}
MAMBA = {"state_size": 8, "num_heads": 8, "head_dim": 16, "n_groups": 2, "chunk_size": 16}
DEEPSEEK = {"q_lora_rank": 32, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 16, "n_routed_experts": 8}
DEEPSEEK |= {"moe_intermediate_size": 32, "n_group": 2, "topk_group": 1, "num_experts_per_tok": 2, "first_k_dense_replace": 1}
DEEPSEEK |= {"num_key_value_heads": 4, "n_shared_experts": 1, "max_position_embeddings": 8192}
XLNET = {"d_model": 64, "n_layer": 2, "n_head": 4, "d_inner": 96}
FUNNEL = {"num_hidden_layers": None, "block_sizes": [1, 1], "d_model": 64, "n_head": 4, "d_head": 16, "d_inner": 96}

DECODERS = {
    "llama": row(decoder, "Llama", **GROUPED),
    "mistral": row(decoder, "Mistral", **GROUPED, sliding_window=16),
    "mixtral": row(decoder, "Mixtral", **GROUPED, **EXPERTS, sliding_window=8192),
    "gemma": row(decoder, "Gemma", **GROUPED, head_dim=16),
    "gemma2": row(decoder, "Gemma2", **GROUPED, head_dim=16, sliding_window=16),
    "gemma3": row(decoder, "Gemma3", **GROUPED, head_dim=16, sliding_window=16),
    "qwen2": row(decoder, "Qwen2", **GROUPED),
    "qwen3": row(decoder, "Qwen3", **GROUPED, head_dim=16),
    "qwen3-moe": row(decoder, "Qwen3Moe", **GROUPED, head_dim=16, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32),
    "phi": row(decoder, "Phi", **GROUPED),
    "phi3": row(decoder, "Phi3", **GROUPED),
    "gpt2": row(decoder, "GPT2", SHORT, head="LMHeadModel", n_embd=64, n_layer=2, n_head=4, n_positions=512),
    "gpt-neo": row(
        decoder,
        "GPTNeo",
        attention_types=[[["global", "local"], 1]],
        num_layers=2,
        num_heads=4,
        window_size=16,
        max_position_embeddings=4200,
    ),
    "gpt-neox": row(decoder, "GPTNeoX", max_position_embeddings=4200),
    "gptj": row(decoder, "GPTJ", n_embd=64, n_layer=2, n_head=4, rotary_dim=8, n_positions=4200),
    "gpt-bigcode": row(decoder, "GPTBigCode", n_embd=64, n_layer=2, n_head=4, n_positions=4200),
    "codegen": row(decoder, "CodeGen", n_embd=64, n_layer=2, n_head=4, rotary_dim=8, n_positions=4200, n_ctx=4200),
    "opt": row(decoder, "OPT", ffn_dim=96, word_embed_proj_dim=64, max_position_embeddings=4200),
    "bloom": row(decoder, "Bloom", n_layer=2, n_head=4),
    "falcon": row(decoder, "Falcon", alibi=False, multi_query=True),
    "mpt": row(decoder, "Mpt", d_model=64, n_layers=2, n_heads=4, max_seq_len=4200),
    "stablelm": row(decoder, "StableLm", **GROUPED),
    "starcoder2": row(decoder, "Starcoder2", **GROUPED),
    "cohere": row(decoder, "Cohere", **GROUPED),
    "olmo2": row(decoder, "Olmo2", **GROUPED),
    "granite": row(decoder, "Granite", **GROUPED),
    "smollm3": row(decoder, "SmolLM3", **GROUPED),
    "nemotron": row(decoder, "Nemotron", **GROUPED),
    "deepseek-v3": row(decoder, "DeepseekV3", **DEEPSEEK),
    "mamba": row(decoder, "Mamba", BATCH, masked=False, length=12, state_size=8),
    "mamba2": row(decoder, "Mamba2", BATCH, masked=False, length=40, **MAMBA),
    "rwkv": row(decoder, "Rwkv", BATCH, masked=False, length=12, context_length=4200),
    "recurrent-gemma": row(decoder, "RecurrentGemma", BATCH, masked=False, length=12, num_key_value_heads=1, lru_width=64),
    "gpt-oss": row(decoder, "GptOss", **GROUPED, **EXPERTS, head_dim=16, sliding_window=16),
    "lfm2": row(decoder, "Lfm2", **GROUPED, layer_types=["conv", "full_attention"]),
}


CACHED_DECODERS = {
    "llama-decode": row(decode, "Llama", CACHED, heads=2, width=16, **GROUPED),
    "mistral-decode": row(decode, "Mistral", CACHED, heads=2, width=16, **GROUPED, sliding_window=8192),
    "mixtral-decode": row(decode, "Mixtral", CACHED, heads=2, width=16, **GROUPED, **EXPERTS, sliding_window=8192),
    "gemma2-decode": row(decode, "Gemma2", CACHED, heads=2, width=16, **GROUPED, head_dim=16, sliding_window=4096),
    "qwen3-decode": row(decode, "Qwen3", CACHED, heads=2, width=16, **GROUPED, head_dim=16),
    "gpt-neox-decode": row(decode, "GPTNeoX", CACHED, heads=4, width=16, max_position_embeddings=8192),
    "opt-decode": row(decode, "OPT", CACHED, heads=4, width=16, ffn_dim=96, word_embed_proj_dim=64, max_position_embeddings=8192),
    "phi3-decode": row(decode, "Phi3", CACHED, heads=2, width=16, **GROUPED),
    "falcon-decode": row(decode, "Falcon", CACHED, heads=1, width=16, alibi=False, multi_query=True),
}

ENCODERS = {
    "bert": row(encoder, "Bert", max_position_embeddings=4200),
    "roberta": row(encoder, "Roberta", max_position_embeddings=4300),
    "deberta": row(encoder, "Deberta", SHORT, relative_attention=True, pos_att_type=["c2p", "p2c"], max_position_embeddings=512),
    "deberta-v2": row(
        encoder,
        "DebertaV2",
        SHORT,
        relative_attention=True,
        pos_att_type=["c2p", "p2c"],
        position_buckets=32,
        share_att_key=True,
        max_position_embeddings=512,
        norm_rel_ebd="layer_norm",
    ),
    "albert": row(encoder, "Albert", embedding_size=32, max_position_embeddings=4200),
    "electra": row(encoder, "Electra", head="ForPreTraining", embedding_size=32, max_position_embeddings=4200),
    "mpnet": row(encoder, "MPNet", max_position_embeddings=4300),
    "distilbert": row(encoder, "DistilBert", dim=64, n_layers=2, n_heads=4, hidden_dim=96, max_position_embeddings=4200),
    "longformer": row(encoder, "Longformer", attention_window=8, max_position_embeddings=1200),
    "big-bird": row(encoder, "BigBird", SHORT, attention_type="original_full", max_position_embeddings=512),
    "fnet": row(encoder, "FNet", SHORT, masked=False, max_position_embeddings=512),
    "funnel": row(encoder, "Funnel", SHORT, **FUNNEL),
    "xlnet": row(encoder, "XLNet", TEXT | {"seq": Symbol(high=1100, example=11)}, **XLNET),
    "modernbert": row(
        encoder,
        "ModernBert",
        TEXT | {"seq": Symbol(high=2100, example=11)},
        max_position_embeddings=4200,
        local_attention=16,
        global_attn_every_n_layers=2,
    ),
    "mobilebert": row(encoder, "MobileBert", SHORT, embedding_size=32, intra_bottleneck_size=32, max_position_embeddings=512),
    "squeezebert": row(encoder, "SqueezeBert", SHORT, embedding_size=64, max_position_embeddings=512),
    "convbert": row(encoder, "ConvBert", SHORT, embedding_size=64, max_position_embeddings=512),
    "roformer": row(encoder, "RoFormer", SHORT, max_position_embeddings=512),
    "rembert": row(encoder, "RemBert", SHORT, input_embedding_size=32, output_embedding_size=32, max_position_embeddings=512),
    "esm": row(encoder, "Esm", SHORT, position_embedding_type="rotary", max_position_embeddings=514),
    "ibert": row(encoder, "IBert", SHORT, max_position_embeddings=520),
    "canine": row(encoder, "Canine", SHORT | {"seq": Symbol(low=8, high=512, multiple=4, example=24)}, max_position_embeddings=512),
    "layoutlm": Architecture(
        lambda: called(
            transformers.LayoutLMModel(config_of("LayoutLM", {"max_position_embeddings": 512})),
            {"input_ids": ids(), "bbox": Input(("batch", "seq", 4), "ascending", 1000), "attention_mask": mask("right-padded")},
        ),
        SHORT,
    ),
}

ENCODER_DECODERS = {
    "t5": row(encoder_decoder, "T5", PAIR, **T5),
    "umt5": row(encoder_decoder, "UMT5", PAIR, **T5),
    "bart": row(encoder_decoder, "Bart", PAIR, max_position_embeddings=2200),
    "marian": row(encoder_decoder, "Marian", PAIR, head="MTModel", max_position_embeddings=2200),
    "pegasus": row(encoder_decoder, "Pegasus", PAIR, max_position_embeddings=2200),
    "m2m100": row(encoder_decoder, "M2M100", PAIR, max_position_embeddings=2200),
    "longt5": row(encoder_decoder, "LongT5", PAIR, **T5, local_radius=7, encoder_attention_type="local"),
    "switch-transformer": row(
        encoder_decoder, "SwitchTransformers", PAIR, **T5, num_experts=4, num_sparse_encoder_layers=1, num_sparse_decoder_layers=1
    ),
}

ROWS = DECODERS | CACHED_DECODERS | ENCODERS | ENCODER_DECODERS
