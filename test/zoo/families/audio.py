"""Networks on sound: of raw samples, and of features over time."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import transformers
from inputs import Input, Symbol
from network import Architecture, Network, called
from torch import Tensor, nn

SAMPLES = {"batch": Symbol(high=4, example=2), "samples": Symbol(low=400, high=40000, example=1601)}
FRAMES = {"batch": Symbol(high=8, example=2), "frames": Symbol(low=16, high=3000, example=61)}
CODED = {"batch": Symbol(high=4, example=2), "frames": Symbol(low=2, high=400, example=13)}
SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96, "vocab_size": 32}
CONVOLUTIONS = {"conv_dim": [32, 32, 32], "conv_stride": [5, 4, 4], "conv_kernel": [10, 8, 4], "num_conv_pos_embeddings": 16}
CONVOLUTIONS |= {"num_conv_pos_embedding_groups": 4}
SPEECH = {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4}
SPEECH |= {"encoder_ffn_dim": 96, "decoder_ffn_dim": 96, "vocab_size": 99, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
SPEECH |= {"decoder_start_token_id": 1}


def raw(name: str, head: str = "Model", **options: Any) -> Network:
    """An encoder of samples, by strided convolutions and attention."""
    config = getattr(transformers, f"{name}Config")(**(SMALL | CONVOLUTIONS | options))
    return called(getattr(transformers, name + head)(config), {"input_values": Input(("batch", "samples"))})


def row(name: str, head: str = "Model", **options: Any) -> Architecture:
    return Architecture(partial(raw, name, head, **options), SAMPLES)


def encodec(part: str) -> Network:
    """Encodec's way down to codes, or from codes up to samples."""
    config = transformers.EncodecConfig(num_filters=4, hidden_size=16, codebook_dim=16, codebook_size=32, target_bandwidths=[6.0])
    model = transformers.EncodecModel(config)
    if part == "encoder":
        return called(model, {"samples": Input(("batch", 1, "samples"))}, lambda model, samples: model.encoder(samples))
    decode = lambda model, codes: model.decoder(model.quantizer.decode(codes.transpose(0, 1)))  # noqa: E731  # a row's function
    return called(model, {"codes": Input(("batch", 4, "frames"), "below", 32)}, decode)


def whisper(part: str) -> Network:
    """Whisper's encoder, whose frames are fixed, or its decoder over the tokens so far."""
    config = transformers.WhisperConfig(**SPEECH, num_mel_bins=20, max_source_positions=150, max_target_positions=448)
    model = transformers.WhisperModel(config)
    if part == "encoder":
        return called(model.encoder, {"input_features": Input(("batch", 20, 300))})
    inputs = {"input_ids": Input(("batch", "seq"), "below", 99), "encoder_hidden_states": Input(("batch", "frames", 64))}
    return called(model.decoder, inputs, use_cache=False)


def speech_to_text() -> Network:
    config = transformers.Speech2TextConfig(
        **SPEECH, input_feat_per_channel=20, conv_channels=32, max_source_positions=3000, max_target_positions=448
    )
    inputs = {"input_features": Input(("batch", "frames", 20)), "decoder_input_ids": Input(("batch", "seq"), "below", 99)}
    return called(transformers.Speech2TextModel(config), inputs, use_cache=False)


def moonshine() -> Network:
    """Speech recognition on raw samples with rotary positions."""
    sizes = {"hidden_size": 48, "intermediate_size": 96, "encoder_num_hidden_layers": 2, "decoder_num_hidden_layers": 2, "vocab_size": 99}
    config = transformers.MoonshineConfig(**sizes, encoder_num_attention_heads=4, decoder_num_attention_heads=4)
    inputs = {"input_values": Input(("batch", "samples")), "decoder_input_ids": Input(("batch", "seq"), "below", 99)}
    return called(transformers.MoonshineModel(config), inputs, use_cache=False)


def spectrogram_transformer() -> Network:
    config = transformers.ASTConfig(
        **{k: v for k, v in SMALL.items() if k != "vocab_size"},
        patch_size=8,
        max_length=64,
        num_mel_bins=32,
        frequency_stride=5,
        time_stride=5,
    )
    return called(transformers.ASTForAudioClassification(config), {"input_values": Input(("batch", 64, 32))})


def clap() -> Network:
    """CLAP's encoder of spectrograms: a Swin transformer."""
    config = transformers.ClapAudioConfig(
        spec_size=64,
        num_mel_bins=16,
        patch_embeds_hidden_size=24,
        hidden_size=96,
        depths=[1, 1, 1],
        num_attention_heads=[2, 4, 4],
        window_size=4,
        patch_embed_input_channels=1,
        num_hidden_layers=3,
        projection_dim=32,
    )
    return called(transformers.ClapAudioModel(config), {"input_features": Input(("batch", 1, 256, 16))})


class FixedNoise(nn.Module):
    """VITS without chance: the noise of its latents is 0, and durations come from the deterministic predictor."""

    def __init__(self) -> None:
        super().__init__()
        sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "ffn_dim": 64, "flow_size": 32, "vocab_size": 38}
        sizes |= {"spectrogram_bins": 33, "upsample_initial_channel": 32, "upsample_rates": [4, 4], "upsample_kernel_sizes": [8, 8]}
        sizes |= {"prior_encoder_num_flows": 2, "posterior_encoder_num_wavenet_layers": 2, "prior_encoder_num_wavenet_layers": 2}
        self.vits = transformers.VitsModel(transformers.VitsConfig(**sizes, use_stochastic_duration_prediction=False))

    def forward(self, latents: Tensor, mask: Tensor) -> Tensor:
        padding = mask[:, None].to(latents.dtype)
        return self.vits.decoder(self.vits.flow(latents, padding, None, reverse=True) * padding, None)


def vits() -> Network:
    """The second half of VITS: latents through the flow backwards, then upsampled to samples by transposed convolutions."""
    inputs = {"latents": Input(("batch", 32, "frames")), "mask": Input(("batch", "frames"), "right-padded")}
    return called(FixedNoise(), inputs)


def vits_text() -> Network:
    """The first half of VITS: text with relative positions."""
    inputs = {"input_ids": Input(("batch", "frames"), "below", 38), "attention_mask": Input(("batch", "frames"), "right-padded")}

    def encode(model: nn.Module, input_ids: Tensor, attention_mask: Tensor) -> Any:
        padding = attention_mask[:, :, None].float()
        found = model.vits.text_encoder(input_ids, padding, attention_mask)
        durations = model.vits.duration_predictor(found.last_hidden_state.transpose(1, 2), padding.transpose(1, 2), None)
        return found.last_hidden_state, found.prior_means, durations

    return called(FixedNoise(), inputs, encode)


class WaveNet(nn.Module):
    """Dilated causal convolutions with gates and skips."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.first = nn.Conv1d(1, width, 1)
        self.gates = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=2**i) for i in range(6))
        self.out = nn.ModuleList(nn.Conv1d(width, 2 * width, 1) for _ in range(6))
        self.head = nn.Sequential(nn.ReLU(), nn.Conv1d(width, width, 1), nn.ReLU(), nn.Conv1d(width, 32, 1))

    def forward(self, samples: Tensor) -> Tensor:
        x, skips = self.first(samples), 0
        for i, (gate, out) in enumerate(zip(self.gates, self.out, strict=True)):
            a, b = gate(nn.functional.pad(x, (2**i, 0))).chunk(2, 1)
            residual, skip = out(torch.tanh(a) * torch.sigmoid(b)).chunk(2, 1)
            x, skips = x + residual, skips + skip
        return self.head(skips)


DECODED = {"batch": Symbol(high=8, example=2), "seq": Symbol(high=440, example=5), "frames": Symbol(high=1500, example=13)}

ROWS = {
    "wav2vec2": row("Wav2Vec2", "ForCTC"),
    "wav2vec2-stable": row("Wav2Vec2", do_stable_layer_norm=True, feat_extract_norm="layer"),
    "hubert": row("Hubert"),
    "wavlm": row("WavLM", num_buckets=32, max_bucket_distance=80),
    "sew": row("SEW", squeeze_factor=2),
    "sew-d": row("SEWD", squeeze_factor=2, max_position_embeddings=512, position_buckets=32),
    "unispeech-sat": row("UniSpeechSat"),
    "data2vec-audio": row("Data2VecAudio", num_conv_pos_embeddings=2, conv_pos_kernel_size=5),
    "encodec-encoder": Architecture(partial(encodec, "encoder"), SAMPLES),
    "encodec-decoder": Architecture(partial(encodec, "decoder"), CODED),
    "whisper-encoder": Architecture(partial(whisper, "encoder"), {"batch": Symbol(high=16, example=2)}),
    "whisper-decoder": Architecture(partial(whisper, "decoder"), DECODED),
    "speech-to-text": Architecture(speech_to_text, FRAMES | {"seq": Symbol(high=440, example=5)}),
    "moonshine": Architecture(
        moonshine, SAMPLES | {"seq": Symbol(high=190, example=5), "samples": Symbol(low=1000, high=40000, example=4001)}
    ),
    "ast": Architecture(spectrogram_transformer, {"batch": Symbol(high=40, example=2)}),
    "clap": Architecture(clap, {"batch": Symbol(high=16, example=2)}),
    "vits-flow": Architecture(vits, CODED),
    "vits-text": Architecture(vits_text, CODED | {"frames": Symbol(low=2, high=1100, example=13)}),
    "wavenet": Architecture(
        lambda: called(WaveNet(), {"samples": Input(("batch", 1, "samples"))}), SAMPLES | {"samples": Symbol(high=9000, example=301)}
    ),
}
