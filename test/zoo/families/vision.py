"""Networks on images: of timm, torchvision and transformers, and a few written here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import timm
import torch
import torch.nn.functional as F
import torchvision
import transformers
from inputs import Input, Symbol
from network import Architecture, Network, called
from torch import Tensor, nn

CLASSES = 10


def open_image(low: int = 32, multiple: int = 1, high: int = 1100, batch: int = 4) -> dict[str, Symbol]:
    """Batch, height and width are open."""
    example = max(64, low)
    sides = {
        "height": Symbol(low, high, multiple, -(-example // multiple) * multiple),
        "width": Symbol(low, high, multiple, (-(-example // multiple) + 1) * multiple),
    }
    return {"batch": Symbol(high=batch, example=2)} | sides


BATCH = {"batch": Symbol(high=40, example=2)}


def images(channels: int = 3, size: int | None = None) -> Input:
    """Images of open sides, or of a fixed one."""
    return Input(("batch", channels, *(("height", "width") if size is None else (size, size))))


def of(build: Callable[[], nn.Module], size: int | None = None, name: str = "pixel_values", channels: int = 3, **options: Any) -> Network:
    return called(build(), {name: images(channels, size)}, **options)


def plain(build: Callable[[], nn.Module], size: int | None = None) -> Network:
    """A module whose one argument has no name that is known."""
    return called(build(), {"image": images(3, size)}, lambda model, image: model(image))


def conv(build: Callable[[], nn.Module], low: int = 32, multiple: int = 1, high: int = 1100) -> Architecture:
    """A network for images of any sides."""
    return Architecture(partial(plain, build), open_image(low, multiple, high))


def fixed(build: Callable[[], nn.Module], size: int) -> Architecture:
    """A network for images of one size, of any number."""
    return Architecture(partial(plain, build, size), BATCH)


def from_timm(name: str, **options: Any) -> Callable[[], nn.Module]:
    return lambda: timm.create_model(name, pretrained=False, num_classes=CLASSES, **options)


def from_torchvision(name: str, **options: Any) -> Callable[[], nn.Module]:
    return lambda: getattr(torchvision.models, name)(weights=None, num_classes=CLASSES, **options)


TIMM = {
    "timm-resnet": conv(from_timm("test_resnet")),
    "timm-convnext": conv(from_timm("test_convnext")),
    "timm-convnext-v2": conv(from_timm("test_convnext2")),
    "timm-efficientnet": conv(from_timm("test_efficientnet")),
    "timm-efficientnet-evonorm": conv(from_timm("test_efficientnet_evos")),
    "timm-efficientnet-groupnorm": conv(from_timm("test_efficientnet_gn")),
    "timm-byobnet": conv(from_timm("test_byobnet")),
    "timm-nfnet": conv(from_timm("test_nfnet")),
    "timm-mambaout": conv(from_timm("test_mambaout")),
    "timm-mobilenet-v4": conv(from_timm("mobilenetv4_conv_small_050")),
    "timm-ghostnet": conv(from_timm("ghostnet_050")),
    "timm-lcnet": conv(from_timm("lcnet_050")),
    "timm-hgnet": conv(from_timm("hgnetv2_b0")),
    "timm-poolformer": conv(from_timm("poolformer_s12")),
    "timm-pvt-v2": conv(from_timm("pvt_v2_b0"), multiple=32),
    "timm-edgenext": conv(from_timm("edgenext_xx_small"), multiple=32),
    "timm-mobilevit-v2": conv(from_timm("mobilevitv2_050"), multiple=32),
    "timm-repvgg": conv(from_timm("repvgg_a0", zero_init_last=False)),
    "timm-xcit": conv(from_timm("xcit_nano_12_p16_224", embed_dim=32, depth=2, num_heads=4), multiple=16),
    "timm-vit": fixed(from_timm("test_vit"), 160),
    "timm-vit-open": conv(from_timm("test_vit", dynamic_img_size=True), multiple=16),
    "timm-vit-registers": fixed(from_timm("test_vit4"), 160),
    "timm-vit-relpos": fixed(from_timm("test_vit_relpos"), 160),
    "timm-maxvit": fixed(from_timm("test_maxvit"), 160),
    "timm-coatnet": fixed(from_timm("test_coatnet"), 160),
    "timm-deit": fixed(from_timm("deit_tiny_distilled_patch16_224", embed_dim=48, depth=2, num_heads=3, img_size=96), 96),
    "timm-beit": fixed(from_timm("beit_base_patch16_224", embed_dim=48, depth=2, num_heads=3, img_size=96), 96),
    "timm-mixer": fixed(lambda: timm.models.mlp_mixer.MlpMixer(CLASSES, 96, patch_size=16, num_blocks=2, embed_dim=48), 96),
    "timm-swin": fixed(from_timm("swin_tiny_patch4_window7_224", embed_dim=24, depths=(2, 2), num_heads=(2, 4), img_size=112), 112),
    "timm-levit": fixed(from_timm("levit_128s"), 224),
    "timm-crossvit": fixed(from_timm("crossvit_tiny_240", embed_dim=(24, 48), depth=((1, 2, 0), (1, 2, 0))), 240),
    "timm-davit": conv(from_timm("davit_tiny", depths=(1, 1, 1, 1), embed_dims=(24, 32, 48, 64), num_heads=(2, 2, 4, 4)), multiple=32),
    "timm-eva02": fixed(from_timm("eva02_tiny_patch14_224", embed_dim=48, depth=2, num_heads=3, img_size=112), 112),
}

TORCHVISION = {
    "resnet18": conv(lambda: torchvision.models.ResNet(torchvision.models.resnet.BasicBlock, [1, 1, 1, 1], CLASSES, width_per_group=64)),
    "resnext": conv(
        lambda: torchvision.models.ResNet(torchvision.models.resnet.Bottleneck, [1, 1, 1, 1], CLASSES, groups=8, width_per_group=4)
    ),
    "vgg": conv(from_torchvision("vgg11_bn"), high=300),
    "alexnet": conv(from_torchvision("alexnet"), low=64),
    "densenet": conv(lambda: torchvision.models.DenseNet(8, (2, 2, 2), 16, num_classes=CLASSES)),
    "squeezenet": conv(from_torchvision("squeezenet1_1")),
    "shufflenet-v2": conv(from_torchvision("shufflenet_v2_x0_5")),
    "mobilenet-v2": conv(from_torchvision("mobilenet_v2", width_mult=0.35)),
    "mobilenet-v3": conv(from_torchvision("mobilenet_v3_small")),
    "mnasnet": conv(from_torchvision("mnasnet0_5")),
    "efficientnet": conv(from_torchvision("efficientnet_b0")),
    "regnet": conv(from_torchvision("regnet_y_400mf")),
    "googlenet": conv(from_torchvision("googlenet", aux_logits=False, init_weights=False, transform_input=True)),
    "inception-v3": conv(from_torchvision("inception_v3", aux_logits=False, init_weights=False), low=96, high=400),
    "vit": fixed(lambda: torchvision.models.VisionTransformer(64, 16, 2, 4, 48, 96, num_classes=CLASSES), 64),
    "swin-v2": conv(
        lambda: torchvision.models.SwinTransformer(
            [4, 4],
            24,
            [2, 2],
            [2, 4],
            [4, 4],
            num_classes=CLASSES,
            block=torchvision.models.swin_transformer.SwinTransformerBlockV2,
            downsample_layer=torchvision.models.swin_transformer.PatchMergingV2,
        ),
        high=600,
    ),
    "maxvit": fixed(lambda: torchvision.models.MaxVit((64, 64), 16, 4, [16, 32], [1, 1], 8, 0.0, num_classes=CLASSES), 64),
    "deeplab-v3": conv(lambda: Segmenter("deeplab"), high=600),
    "fcn": conv(lambda: Segmenter("fcn"), high=600),
    "lraspp": conv(lambda: torchvision.models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None), high=600),
    "raft": Architecture(lambda: raft(), open_image(128, 8, 300, batch=2)),
}


class Segmenter(nn.Module):
    """torchvision's heads for segmentation on a small ResNet."""

    def __init__(self, head: str) -> None:
        super().__init__()
        net = torchvision.models.ResNet(torchvision.models.resnet.BasicBlock, [1, 1, 1, 1], width_per_group=64)
        self.backbone = torchvision.models._utils.IntermediateLayerGetter(net, {"layer3": "out"})
        heads = torchvision.models.segmentation
        self.head = heads.deeplabv3.DeepLabHead(256, CLASSES, [2, 4, 6]) if head == "deeplab" else heads.fcn.FCNHead(256, CLASSES)

    def forward(self, image: Tensor) -> Tensor:
        return F.interpolate(self.head(self.backbone(image)["out"]), size=image.shape[-2:], mode="bilinear", align_corners=False)


def raft() -> Network:
    """Optical flow by iterated look-ups in a volume of correlations."""
    model = torchvision.models.optical_flow.raft_small(weights=None)
    return called(model, {"first": images(), "second": images()}, lambda model, first, second: model(first, second, num_flow_updates=2)[-1])


class UNet(nn.Module):
    """Skips between a way down and a way up, by transposed convolutions; sides that are no multiples are padded."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        widths = [width, 2 * width, 4 * width]
        self.down = nn.ModuleList(self.pair(i, o) for i, o in zip([3, *widths], widths, strict=False))
        self.middle = self.pair(widths[-1], 2 * widths[-1])
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in reversed(widths))
        self.merge = nn.ModuleList(self.pair(2 * w, w) for w in reversed(widths))
        self.head = nn.Conv2d(width, CLASSES, 1)

    @staticmethod
    def pair(i: int, o: int) -> nn.Module:
        return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(4, o), nn.SiLU(), nn.Conv2d(o, o, 3, padding=1), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        skips = []
        for block in self.down:
            x = block(x)
            skips.append(x)
            x = F.max_pool2d(x, 2)
        x = self.middle(x)
        for up, merge, skip in zip(self.up, self.merge, reversed(skips), strict=True):
            x = up(x)
            x = F.pad(x, (0, skip.shape[3] - x.shape[3], 0, skip.shape[2] - x.shape[2]))
            x = merge(torch.cat([skip, x], 1))
        return self.head(x)


class Upscaler(nn.Module):
    """Super-resolution: residual blocks, then sub-pixel convolutions."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.PReLU(width), nn.Conv2d(width, width, 3, padding=1)) for _ in range(3)
        )
        self.up = nn.Conv2d(width, 3 * 9, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        for block in self.blocks:
            y = y + block(y)
        return F.pixel_shuffle(self.up(y), 3) + F.interpolate(x, scale_factor=3, mode="bicubic")


WRITTEN = {"unet": conv(UNet, low=8, high=800), "upscaler": conv(Upscaler, low=1, high=500)}


def vit_like(name: str, head: str = "Model", size: int = 64, config: dict[str, Any] | None = None, **options: Any) -> Network:
    """A vision transformer of transformers for images of one size."""
    sizes = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96, "patch_size": 8}
    made = getattr(transformers, f"{name}Config")(**(sizes | {"image_size": size} | (config or {})))
    return of(lambda: getattr(transformers, name + head)(made), size, **options)


def interpolated(name: str, **config: Any) -> Architecture:
    """A vision transformer whose positions are interpolated to the image's sides."""

    def build() -> Network:
        network = vit_like(name, config=config, interpolate_pos_encoding=True)
        return Network(network.module, {"pixel_values": images()})

    return Architecture(build, open_image(multiple=8, high=600))


def transformers_vision(name: str, head: str, symbols: dict[str, Symbol], **config: Any) -> Architecture:
    """A network of transformers for images of any sides."""
    return Architecture(lambda: of(lambda: getattr(transformers, name + head)(getattr(transformers, f"{name}Config")(**config))), symbols)


def pair_of_towers(name: str) -> Network:
    """CLIP and SigLIP: images and texts, and how well they go together."""
    text = {
        "vocab_size": 99,
        "hidden_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 96,
        "eos_token_id": 2,
    }
    vision = {
        "hidden_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 96,
        "image_size": 64,
        "patch_size": 16,
    }
    config = getattr(transformers, f"{name}Config")(text_config=text | {"max_position_embeddings": 64}, vision_config=vision)
    inputs = {"input_ids": Input(("texts", "seq"), "below", 99), "pixel_values": images(3, 64)}
    inputs["attention_mask"] = Input(("texts", "seq"), "right-padded")
    return called(getattr(transformers, f"{name}Model")(config), inputs)


TOWERS = {"texts": Symbol(high=40, example=3), "seq": Symbol(high=64, example=9), "batch": Symbol(high=40, example=2)}
DPT = {"neck_hidden_sizes": [16, 24, 32, 48], "backbone_out_indices": [0, 1, 2, 3], "num_hidden_layers": 4, "fusion_hidden_size": 16}
SEGFORMER = {"hidden_sizes": [16, 24, 32, 48], "num_attention_heads": [1, 2, 4, 4], "depths": [1, 1, 1, 1], "decoder_hidden_size": 32}


def sam() -> Network:
    """The image encoder of SAM: windows, and positions relative in height and width."""
    sizes = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "mlp_dim": 96, "image_size": 128, "patch_size": 16}
    config = transformers.SamVisionConfig(**sizes, output_channels=32, window_size=3, global_attn_indexes=[1])
    return of(lambda: transformers.SamVisionModel(config), 128)


TRANSFORMERS = {
    "hf-vit": Architecture(lambda: vit_like("ViT"), BATCH),
    "hf-vit-open": interpolated("ViT"),
    "hf-deit": Architecture(lambda: vit_like("DeiT"), BATCH),
    "hf-beit": Architecture(lambda: vit_like("Beit", config={"use_relative_position_bias": True}), BATCH),
    "dinov2": interpolated("Dinov2"),
    "segformer": transformers_vision("Segformer", "ForSemanticSegmentation", open_image(64), **SEGFORMER),
    "hf-swin": transformers_vision(
        "Swin", "Model", open_image(high=600), image_size=64, embed_dim=24, depths=[2, 2], num_heads=[2, 4], window_size=4
    ),
    "hf-mobilevit": transformers_vision(
        "MobileViT", "Model", open_image(multiple=32, high=600), hidden_sizes=[24, 32, 40], neck_hidden_sizes=[8, 16, 24, 32, 40, 48, 64]
    ),
    "hf-pvt": Architecture(
        lambda: of(
            lambda: transformers.PvtModel(
                transformers.PvtConfig(image_size=64, hidden_sizes=[16, 24, 32, 48], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 4, 4])
            ),
            64,
        ),
        BATCH,
    ),
    "hf-focalnet": transformers_vision("FocalNet", "Model", open_image(high=600), embed_dim=16, depths=[1, 1, 1, 1]),
    "clip": Architecture(partial(pair_of_towers, "CLIP"), TOWERS),
    "siglip": Architecture(partial(pair_of_towers, "Siglip"), TOWERS | {"seq": Symbol(high=64, example=9)}),
    "sam-encoder": Architecture(sam, BATCH),
    "dpt": Architecture(lambda: vit_like("DPT", "ForDepthEstimation", 64, DPT), BATCH),
    "vitdet-depth-anything": Architecture(lambda: depth_anything(), open_image(56, 14, 600)),
    "swin2sr": transformers_vision(
        "Swin2SR", "ForImageSuperResolution", open_image(multiple=8, high=200), embed_dim=24, depths=[2], num_heads=[2], window_size=8
    ),
}


def depth_anything() -> Network:
    sizes = {"hidden_size": 48, "num_hidden_layers": 4, "num_attention_heads": 4, "mlp_ratio": 2, "image_size": 56}
    backbone = transformers.Dinov2Config(**sizes, out_indices=[1, 2, 3, 4], reshape_hidden_states=False, apply_layernorm=True)
    config = transformers.DepthAnythingConfig(
        backbone_config=backbone, reassemble_hidden_size=48, neck_hidden_sizes=[16, 24, 32, 48], fusion_hidden_size=16, patch_size=14
    )
    return of(lambda: transformers.DepthAnythingForDepthEstimation(config))


ROWS = TIMM | TORCHVISION | WRITTEN | TRANSFORMERS
