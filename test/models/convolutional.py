"""Convolutional networks written out here."""

from __future__ import annotations

import itertools

import torch
from sample import Sample, Size, image, scaled
from torch import Tensor, nn
from torch.nn import functional as F


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut."""

    expansion = 1

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.closing_norm = scaled(nn.BatchNorm2d(width), 0.2, 0.6)
        self.shortcut = shortcut(inputs, width, stride)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(self.conv1(x)))
        y = self.closing_norm(self.conv2(y))
        return F.relu(y + self.shortcut(x))


class Bottleneck(nn.Module):
    """A 3x3 convolution between two 1x1 convolutions, and a shortcut."""

    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = width * self.expansion
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.closing_norm = scaled(nn.BatchNorm2d(outputs), 0.2, 0.6)
        self.shortcut = shortcut(inputs, outputs, stride)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(self.conv1(x)))
        y = F.relu(self.norm2(self.conv2(y)))
        y = self.closing_norm(self.conv3(y))
        return F.relu(y + self.shortcut(x))


def shortcut(inputs: int, outputs: int, stride: int) -> nn.Module:
    """Identity, or a projection where the shape changes."""
    if inputs == outputs and stride == 1:
        return nn.Identity()
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))


class ResNet(nn.Module):
    """Residual network for classification."""

    def __init__(
        self,
        block: type[BasicBlock] | type[Bottleneck],
        depths: tuple[int, int, int, int],
        width: int,
        classes: int,
    ) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, padding=3, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, padding=1),
        )
        blocks: list[nn.Module] = []
        channels = width
        for stage, depth in enumerate(depths):
            stage_width = width * 2**stage
            for index in range(depth):
                stride = 2 if stage > 0 and index == 0 else 1
                blocks.append(block(channels, stage_width, stride))
                channels = stage_width * block.expansion
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(self.blocks(self.stem(x)))
        return self.classifier(torch.flatten(x, 1))


def resnet18(size: Size) -> Sample:
    """ResNet-18."""
    if size == "tiny":
        model = ResNet(BasicBlock, (2, 2, 2, 2), width=4, classes=10)
        return Sample(model, {"image": image(3, 64, 64)}, ("logits",))
    model = ResNet(BasicBlock, (2, 2, 2, 2), width=64, classes=1000)
    return Sample(model, {"image": image(3, 224, 224)}, ("logits",))


def resnet50(size: Size) -> Sample:
    """ResNet-50; the tiny one has fewer blocks per stage."""
    if size == "tiny":
        model = ResNet(Bottleneck, (1, 2, 2, 1), width=4, classes=10)
        return Sample(model, {"image": image(3, 64, 64)}, ("logits",))
    model = ResNet(Bottleneck, (3, 4, 6, 3), width=64, classes=1000)
    return Sample(model, {"image": image(3, 224, 224)}, ("logits",))


class InvertedResidual(nn.Module):
    """Expand, filter each channel on its own, project back."""

    def __init__(self, inputs: int, outputs: int, stride: int, expand: int) -> None:
        super().__init__()
        hidden = inputs * expand
        layers: list[nn.Module] = []
        if expand != 1:
            layers += [
                nn.Conv2d(inputs, hidden, 1, bias=False),
                nn.BatchNorm2d(hidden),
                nn.ReLU6(),
            ]
        layers += [
            nn.Conv2d(hidden, hidden, 3, stride, padding=1, groups=hidden, bias=False),
            nn.BatchNorm2d(hidden),
            nn.ReLU6(),
            nn.Conv2d(hidden, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        ]
        self.layers = nn.Sequential(*layers)
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        y = self.layers(x)
        return x + y if self.residual else y


class MobileNetV2(nn.Module):
    """Inverted residuals with linear bottlenecks, for classification."""

    # expansion, channels, repeats, stride of the first
    STAGES = (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    )

    def __init__(self, divide: int, last: int, classes: int) -> None:
        super().__init__()
        channels = 32 // divide
        layers: list[nn.Module] = [
            nn.Conv2d(3, channels, 3, 2, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU6(),
        ]
        for expand, width, repeats, first_stride in self.STAGES:
            for index in range(repeats):
                stride = first_stride if index == 0 else 1
                outputs = width // divide
                layers.append(InvertedResidual(channels, outputs, stride, expand))
                channels = outputs
        layers += [
            nn.Conv2d(channels, last, 1, bias=False),
            nn.BatchNorm2d(last),
            nn.ReLU6(),
        ]
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(last, classes))

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x).mean(dim=(2, 3)))


def mobilenet_v2(size: Size) -> Sample:
    """MobileNet v2, width 1.0."""
    if size == "tiny":
        model = MobileNetV2(divide=8, last=40, classes=10)
        return Sample(model, {"image": image(3, 64, 64)}, ("logits",))
    model = MobileNetV2(divide=1, last=1280, classes=1000)
    return Sample(model, {"image": image(3, 224, 224)}, ("logits",))


class DoubleConv(nn.Module):
    """Twice a 3x3 convolution, a group norm and SiLU."""

    def __init__(self, inputs: int, outputs: int, groups: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1),
            nn.GroupNorm(groups, outputs),
            nn.SiLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1),
            nn.GroupNorm(groups, outputs),
            nn.SiLU(),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class UpLevel(nn.Module):
    """Doubles the resolution, joins the skip connection, convolves.

    ``how`` is one of ``transpose`` (transposed convolution), ``bilinear`` (to the
    size of the skip), ``corners`` (bilinear with aligned corners) and ``nearest``
    (by a factor of two).
    """

    def __init__(self, inputs: int, outputs: int, groups: int, how: str) -> None:
        super().__init__()
        self.how = how
        if how == "transpose":
            self.up: nn.Module = nn.ConvTranspose2d(inputs, outputs, 2, stride=2)
        else:
            self.up = nn.Conv2d(inputs, outputs, 1)
        self.join = DoubleConv(2 * outputs, outputs, groups)

    def forward(self, x: Tensor, skip: Tensor) -> Tensor:
        x = self.up(x)
        if self.how == "nearest":
            x = F.interpolate(x, scale_factor=2.0, mode="nearest")
        elif self.how != "transpose":
            corners = self.how == "corners"
            extent = skip.shape[2:]
            x = F.interpolate(x, extent, mode="bilinear", align_corners=corners)
        return self.join(torch.cat((skip, x), dim=1))


class UNet(nn.Module):
    """Encoder and decoder with skip connections, for dense prediction."""

    UP = ("transpose", "bilinear", "corners", "nearest")

    def __init__(self, widths: tuple[int, ...], groups: int, classes: int) -> None:
        super().__init__()
        self.enter = DoubleConv(3, widths[0], groups)
        pairs = list(itertools.pairwise(widths))
        self.down = nn.ModuleList(DoubleConv(a, b, groups) for a, b in pairs)
        self.up = nn.ModuleList(UpLevel(b, a, groups, self.UP[level]) for level, (a, b) in enumerate(reversed(pairs)))
        self.leave = nn.Conv2d(widths[0], classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.enter(x)
        skips = []
        for level in self.down:
            skips.append(x)
            x = level(F.max_pool2d(x, 2))
        for level in self.up:
            x = level(x, skips.pop())
        return torch.sigmoid(self.leave(x))


def unet(size: Size) -> Sample:
    """U-Net with group norm; each level up resizes in a different way."""
    if size == "tiny":
        model = UNet((4, 6, 8, 12, 16), groups=2, classes=2)
        return Sample(model, {"image": image(3, 32, 48)}, ("mask",))
    model = UNet((64, 128, 256, 512, 1024), groups=32, classes=4)
    return Sample(model, {"image": image(3, 256, 256)}, ("mask",))


class Segmenter(nn.Module):
    """Labels every pixel of an image of any size with the shares of the classes.

    Each level down halves the size, rounded up, and each level up brings back the size of the level before.
    """

    def __init__(self, widths: tuple[int, ...], classes: int) -> None:
        super().__init__()
        pairs = list(itertools.pairwise(widths))
        self.enter = nn.Sequential(nn.Conv2d(3, widths[0], 3, 2, padding=1, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU())
        self.down = nn.ModuleList(nn.Sequential(BasicBlock(a, b, 2), BasicBlock(b, b, 1)) for a, b in pairs)
        self.side = nn.ModuleList(nn.Conv2d(width, widths[0], 1) for width in widths)
        self.leave = nn.Sequential(
            nn.Conv2d(widths[0], widths[0], 3, padding=1, bias=False),
            nn.BatchNorm2d(widths[0]),
            nn.ReLU(),
            nn.Conv2d(widths[0], classes, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        extent = x.shape[2:]
        levels = [self.enter(x)]
        for level in self.down:
            levels.append(level(levels[-1]))
        y = self.side[-1](levels[-1])
        for level, side in zip(reversed(levels[:-1]), list(self.side)[-2::-1], strict=True):
            y = side(level) + F.interpolate(y, level.shape[2:], mode="bilinear", align_corners=False)
        return F.interpolate(torch.softmax(self.leave(y), dim=1), extent, mode="bilinear", align_corners=False)


def segmenter(size: Size) -> Sample:
    """A fully convolutional network, whose tiny one has fewer levels and channels."""
    if size == "tiny":
        return Sample(Segmenter((4, 6, 8), classes=3), {"image": image(3, 32, 48)}, ("shares",))
    return Sample(Segmenter((32, 64, 128, 256), classes=21), {"image": image(3, 256, 320)}, ("shares",))
