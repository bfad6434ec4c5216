"""Networks that find objects in images."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
import transformers
from inputs import Input
from network import Architecture, Network, called
from torch import Tensor, nn

from families.vision import BATCH, images, open_image

RESNET = {"embedding_size": 16, "hidden_sizes": [16, 24, 32, 48], "depths": [1, 1, 1, 1], "out_features": ["stage4"]}
DETR = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4, "decoder_attention_heads": 4}
DETR |= {"encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "num_queries": 10, "use_timm_backbone": False, "use_pretrained_backbone": False}


def detr(name: str, **options: Any) -> Network:
    """Convolutions, then queries that attend to the image."""
    backbone = transformers.ResNetConfig(**RESNET)
    config = getattr(transformers, f"{name}Config")(**(DETR | {"backbone_config": backbone} | options))
    return called(getattr(transformers, f"{name}ForObjectDetection")(config), {"pixel_values": images()})


def rt_detr() -> Network:
    backbone = transformers.RTDetrResNetConfig(**(RESNET | {"out_features": ["stage2", "stage3", "stage4"], "layer_type": "basic"}))
    config = transformers.RTDetrConfig(
        backbone_config=backbone,
        encoder_hidden_dim=32,
        encoder_in_channels=[24, 32, 48],
        encoder_ffn_dim=64,
        encoder_attention_heads=4,
        feat_strides=[8, 16, 32],
        d_model=32,
        decoder_in_channels=[32, 32, 32],
        decoder_ffn_dim=64,
        num_queries=10,
        decoder_layers=1,
        decoder_attention_heads=4,
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        anchor_image_size=None,
        encoder_layers=1,
    )
    return called(transformers.RTDetrForObjectDetection(config), {"pixel_values": images()})


def yolos() -> Network:
    sizes = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96}
    config = transformers.YolosConfig(**sizes, image_size=[64, 64], patch_size=16, num_detection_tokens=10)
    return called(transformers.YolosForObjectDetection(config), {"pixel_values": images()})


def owl() -> Network:
    """Objects named by texts."""
    tower = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96}
    config = transformers.OwlViTConfig(
        text_config=tower | {"vocab_size": 99, "max_position_embeddings": 16, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2},
        vision_config=tower | {"image_size": 64, "patch_size": 16}, projection_dim=48,
    )  # fmt: skip
    inputs = {"input_ids": Input(("3 * batch", 16), "below", 99), "pixel_values": images(3, 64)}
    inputs["attention_mask"] = Input(("3 * batch", 16), "right-padded")
    return called(transformers.OwlViTForObjectDetection(config), inputs)


class Conv(nn.Sequential):
    def __init__(self, i: int, o: int, kernel: int = 1, stride: int = 1) -> None:
        super().__init__(nn.Conv2d(i, o, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(o), nn.SiLU())


class Split(nn.Module):
    """YOLOv8's block: half of the channels goes through bottlenecks, and all that they give is joined."""

    def __init__(self, i: int, o: int, count: int, residual: bool) -> None:
        super().__init__()
        self.first, self.last, self.residual = Conv(i, o), Conv((2 + count) * o // 2, o), residual
        self.blocks = nn.ModuleList(nn.Sequential(Conv(o // 2, o // 2, 3), Conv(o // 2, o // 2, 3)) for _ in range(count))

    def forward(self, x: Tensor) -> Tensor:
        parts = list(self.first(x).chunk(2, 1))
        for block in self.blocks:
            parts.append(block(parts[-1]) + parts[-1] if self.residual else block(parts[-1]))
        return self.last(torch.cat(parts, 1))


class Pyramid(nn.Module):
    """Spatial pyramid pooling, by the same pooling three times."""

    def __init__(self, i: int, o: int) -> None:
        super().__init__()
        self.first, self.last, self.pool = Conv(i, i // 2), Conv(2 * i, o), nn.MaxPool2d(5, 1, 2)

    def forward(self, x: Tensor) -> Tensor:
        found = [self.first(x)]
        for _ in range(3):
            found.append(self.pool(found[-1]))
        return self.last(torch.cat(found, 1))


class Yolo(nn.Module):
    """A detector in the manner of YOLOv8: a backbone, a path up and down, and heads whose boxes are expected distances."""

    def __init__(self, width: int = 16, classes: int = 10, bins: int = 8) -> None:
        super().__init__()
        w = [width, 2 * width, 4 * width, 6 * width]
        self.stem = nn.Sequential(Conv(3, w[0], 3, 2), Conv(w[0], w[1], 3, 2), Split(w[1], w[1], 1, True))
        self.two = nn.Sequential(Conv(w[1], w[2], 3, 2), Split(w[2], w[2], 2, True))
        self.three = nn.Sequential(Conv(w[2], w[3], 3, 2), Split(w[3], w[3], 1, True), Pyramid(w[3], w[3]))
        self.up, self.down = Split(w[3] + w[2], w[2], 1, False), Split(w[2] + w[3], w[3], 1, False)
        self.shrink = Conv(w[2], w[2], 3, 2)
        self.boxes = nn.ModuleList(nn.Sequential(Conv(i, 16, 3), nn.Conv2d(16, 4 * bins, 1)) for i in w[2:])
        self.classes = nn.ModuleList(nn.Sequential(Conv(i, 16, 3), nn.Conv2d(16, classes, 1)) for i in w[2:])
        self.bins, self.count, self.strides = bins, classes, (8, 16)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        two = self.two(self.stem(image))
        three = self.three(two)
        fine = self.up(torch.cat([F.interpolate(three, scale_factor=2.0), two], 1))
        maps = fine, self.down(torch.cat([self.shrink(fine), three], 1))
        boxes, scores = [], []
        for x, box, score, stride in zip(maps, self.boxes, self.classes, self.strides, strict=True):
            n, _, h, w = x.shape
            distances = box(x).reshape(n, 4, self.bins, h * w).softmax(2).mul(torch.arange(self.bins).float()[:, None]).sum(2)
            ys, xs = torch.arange(h).float() + 0.5, torch.arange(w).float() + 0.5
            centres = torch.stack([xs.repeat(h), ys[:, None].expand(h, w).reshape(-1)])
            low, high = distances.chunk(2, 1)
            boxes.append(torch.cat([centres - low, centres + high], 1) * stride)
            scores.append(score(x).reshape(n, self.count, h * w).sigmoid())
        return torch.cat(boxes, 2), torch.cat(scores, 2)


ROWS = {
    "detr": Architecture(partial(detr, "Detr"), open_image(64, 1, 600)),
    "conditional-detr": Architecture(partial(detr, "ConditionalDetr"), open_image(64, 1, 600)),
    "rt-detr": Architecture(rt_detr, open_image(64, 32, 600)),
    "yolos": Architecture(yolos, open_image(64, 16, 600)),
    "owl-vit": Architecture(owl, BATCH),
    "yolo-v8": Architecture(lambda: called(Yolo(), {"image": images()}), open_image(32, 16, 1100)),
}
