"""Networks of diffusion models, of diffusers: denoisers and autoencoders."""

from __future__ import annotations

from functools import partial
from typing import Any

import diffusers
from inputs import Input, Symbol
from network import Architecture, Network, called

LATENTS = {
    "batch": Symbol(high=4, example=2),
    "height": Symbol(low=8, high=128, multiple=8, example=16),
    "width": Symbol(low=8, high=128, multiple=8, example=24),
}
TEXT = {"tokens": Symbol(high=300, example=9)}
STEP = Input(("batch",), "below", 1000)


def latents(channels: int = 4, sides: tuple[Any, Any] = ("height", "width")) -> Input:
    return Input(("batch", channels, *sides))


def unet(**options: Any) -> Network:
    """Stable Diffusion's denoiser, with attention to a text."""
    sizes = {
        "block_out_channels": (32, 64),
        "layers_per_block": 1,
        "cross_attention_dim": 48,
        "attention_head_dim": 4,
        "norm_num_groups": 8,
    }
    blocks = {"down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"), "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D")}
    model = diffusers.UNet2DConditionModel(sample_size=16, **(sizes | blocks | options))
    return called(model, {"sample": latents(), "timestep": STEP, "encoder_hidden_states": Input(("batch", "tokens", 48))})


def unconditional() -> Network:
    sizes = {"block_out_channels": (32, 64), "layers_per_block": 1, "attention_head_dim": 8, "norm_num_groups": 8}
    blocks = {"down_block_types": ("DownBlock2D", "AttnDownBlock2D"), "up_block_types": ("AttnUpBlock2D", "UpBlock2D")}
    return called(
        diffusers.UNet2DModel(sample_size=16, in_channels=3, out_channels=3, **sizes, **blocks), {"sample": latents(3), "timestep": STEP}
    )


def autoencoder(part: str) -> Network:
    """AutoencoderKL's encoder to moments, or its decoder."""
    blocks = {"down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2}
    model = diffusers.AutoencoderKL(block_out_channels=(16, 32), norm_num_groups=8, latent_channels=4, **blocks)
    if part == "encoder":
        return called(model, {"image": latents(3)}, lambda model, image: model.quant_conv(model.encoder(image)))
    return called(model, {"latents": latents()}, lambda model, latents: model.decoder(model.post_quant_conv(latents)))


def vector_quantised() -> Network:
    model = diffusers.VQModel(block_out_channels=(16, 32), norm_num_groups=8, num_vq_embeddings=32, latent_channels=4,
                              down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2)  # fmt: skip
    return called(model, {"sample": latents(3)})


def dit() -> Network:
    """A transformer on patches, with the class and the time in its norms."""
    model = diffusers.DiTTransformer2DModel(
        num_attention_heads=4, attention_head_dim=12, num_layers=2, sample_size=16, patch_size=2, norm_num_groups=4, num_embeds_ada_norm=10
    )
    return called(model, {"hidden_states": latents(4, (16, 16)), "timestep": STEP, "class_labels": Input(("batch",), "below", 10)})


def sd3() -> Network:
    """Stable Diffusion 3: text and patches in one attention."""
    model = diffusers.SD3Transformer2DModel(
        sample_size=32,
        patch_size=2,
        in_channels=4,
        num_layers=2,
        attention_head_dim=12,
        num_attention_heads=4,
        joint_attention_dim=32,
        caption_projection_dim=48,
        pooled_projection_dim=24,
        out_channels=4,
        pos_embed_max_size=96,
    )
    inputs = {"hidden_states": latents(), "encoder_hidden_states": Input(("batch", "tokens", 32))}
    return called(model, inputs | {"pooled_projections": Input(("batch", 24)), "timestep": STEP})


def flux() -> Network:
    """Flux: two streams, then one, with rotary positions of text and patches."""
    model = diffusers.FluxTransformer2DModel(
        patch_size=1,
        in_channels=16,
        num_layers=1,
        num_single_layers=1,
        attention_head_dim=16,
        num_attention_heads=4,
        joint_attention_dim=32,
        pooled_projection_dim=24,
        axes_dims_rope=(4, 6, 6),
    )
    inputs = {"hidden_states": Input(("batch", "patches", 16)), "encoder_hidden_states": Input(("batch", "tokens", 32))}
    inputs |= {"pooled_projections": Input(("batch", 24)), "timestep": Input(("batch",), "uniform")}
    inputs |= {"img_ids": Input(("patches", 3), "below", 64, "float32"), "txt_ids": Input(("tokens", 3), "below", 2, "float32")}
    return called(model, inputs)


def pixart() -> Network:
    model = diffusers.PixArtTransformer2DModel(
        num_attention_heads=4,
        attention_head_dim=12,
        num_layers=2,
        sample_size=16,
        patch_size=2,
        cross_attention_dim=48,
        caption_channels=32,
        norm_num_groups=4,
        use_additional_conditions=False,
    )
    inputs = {"hidden_states": latents(4, (16, 16)), "encoder_hidden_states": Input(("batch", "tokens", 32)), "timestep": STEP}
    return called(model, inputs)


def tiny_autoencoder() -> Network:
    model = diffusers.AutoencoderTiny(encoder_block_out_channels=(16, 16), decoder_block_out_channels=(16, 16), num_encoder_blocks=(1, 2),
                                      num_decoder_blocks=(2, 1))  # fmt: skip
    return called(model, {"image": latents(3)}, lambda model, image: model.decoder(model.encoder(image)))


def control() -> Network:
    """A control network: a picture steers the denoiser's residuals."""
    model = diffusers.ControlNetModel(block_out_channels=(32, 64), layers_per_block=1, cross_attention_dim=48, attention_head_dim=4,
                                      norm_num_groups=8, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
                                      conditioning_embedding_out_channels=(8, 16))  # fmt: skip
    inputs = {"sample": latents(), "timestep": STEP, "encoder_hidden_states": Input(("batch", "tokens", 48))}
    return called(model, inputs | {"controlnet_cond": latents(3, ("2 * height", "2 * width"))}, conditioning_scale=0.8)


FLUX = {"batch": Symbol(high=4, example=2), "patches": Symbol(high=2100, example=24), "tokens": Symbol(high=600, example=9)}
FIXED = {"batch": Symbol(high=16, example=2)}

ROWS = {
    "unet-2d-condition": Architecture(unet, LATENTS | TEXT),
    "unet-sdxl": Architecture(partial(unet, use_linear_projection=True, transformer_layers_per_block=2), LATENTS | TEXT),
    "unet-2d": Architecture(unconditional, LATENTS),
    "controlnet": Architecture(control, LATENTS | TEXT),
    "vae-encoder": Architecture(partial(autoencoder, "encoder"), LATENTS | {s: Symbol(16, 256, 8, 32) for s in ("height", "width")}),
    "vae-decoder": Architecture(partial(autoencoder, "decoder"), LATENTS),
    "vae-tiny": Architecture(tiny_autoencoder, LATENTS),
    "vq-model": Architecture(vector_quantised, LATENTS),
    "dit": Architecture(dit, FIXED),
    "pixart": Architecture(pixart, FIXED | TEXT),
    "sd3-transformer": Architecture(sd3, LATENTS | TEXT),
    "flux-transformer": Architecture(flux, FLUX),
}
