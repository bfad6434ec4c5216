"""The models of `bench torch`, with random weights: each is a function that gives a module and its inputs."""

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F


def scale() -> tuple[Any, tuple[Any, ...]]:
    """x * 2 + 1 of eight numbers: the overhead of a call."""

    class Scale(nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2 + 1

    return Scale(), (torch.randn(8),)


def mlp() -> tuple[Any, tuple[Any, ...]]:
    """Three dense layers of 512, batch 32."""
    layers = [nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 10)]
    return nn.Sequential(*layers), (torch.randn(32, 256),)


def cnn() -> tuple[Any, tuple[Any, ...]]:
    """Residual blocks of ResNet-18's widths on images of 64 x 64, batch 2."""

    class Block(nn.Module):
        def __init__(self, before: int, after: int, stride: int) -> None:
            super().__init__()
            first = [nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
            self.inner = nn.Sequential(*first, nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after))
            is_same = stride == 1 and before == after
            self.around = nn.Identity() if is_same else nn.Sequential(nn.Conv2d(before, after, 1, stride), nn.BatchNorm2d(after))

        def forward(self, x: Any) -> Any:
            return torch.relu(self.inner(x) + self.around(x))

    first = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    blocks = [Block(64, 64, 1), Block(64, 128, 2), Block(128, 256, 2), Block(256, 512, 2)]
    return nn.Sequential(*first, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)), (torch.randn(2, 3, 64, 64),)


def encoder() -> tuple[Any, tuple[Any, ...]]:
    """Four layers of width 256 with four heads, 64 tokens, batch 2."""
    layer = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
    return nn.TransformerEncoder(layer, 4, enable_nested_tensor=False), (torch.randn(2, 64, 256),)


def gpt() -> tuple[Any, tuple[Any, ...]]:
    """A causal decoder of four layers of width 256, 64 tokens, batch 2, with the logits of 1,000 words."""

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.LayerNorm(256), nn.LayerNorm(256)
            self.qkv, self.out = nn.Linear(256, 768), nn.Linear(256, 256)
            self.mlp = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256))

        def forward(self, x: Any) -> Any:
            q, k, v = self.qkv(self.first(x)).unflatten(-1, (3, 4, 64)).permute(2, 0, 3, 1, 4)
            x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
            return x + self.mlp(self.second(x))

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(1000, 256), nn.Embedding(64, 256)
            self.layers, self.norm, self.head = nn.Sequential(*(Layer() for _ in range(4))), nn.LayerNorm(256), nn.Linear(256, 1000)

        def forward(self, tokens: Any) -> Any:
            x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
            return self.head(self.norm(self.layers(x)))

    return Decoder(), (torch.randint(0, 1000, (2, 64)),)
