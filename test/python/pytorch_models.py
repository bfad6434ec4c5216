"""Small PyTorch models with random weights, of the architectures that matter, and how they are compared with eager."""

import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils import _pytree

import relayc


def drawn(*shape, seed=0):
    """Normal numbers."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def model_of(function):
    """A model that is a function."""
    return type("Model", (nn.Module,), {"forward": staticmethod(function)})()


def agrees(model, args, kwargs=None, dynamic_shapes=None, more=(), tolerance=1e-5, **options):
    """The compiled model, which agrees with eager on the arguments it is exported with and on others.

    The tolerance is of the largest element of a result: some times the rounding of float32.
    """
    model, seen = model.eval(), []
    with torch.no_grad():
        imported = relayc.from_pytorch(
            model, args, kwargs, dynamic_shapes=dynamic_shapes, progress=lambda done, total: seen.append((done, total)), **options
        )
        assert seen == [(i + 1, len(seen)) for i in range(len(seen))] != []
        module = relayc.compile(imported, num_threads=1)
        for given in ((args, kwargs or {}), *((others, {}) for others in more)):
            wanted = copy.deepcopy(model)(*copy.deepcopy(given[0]), **copy.deepcopy(given[1]))
            found = module(*given[0], **given[1])
            assert _pytree.tree_structure(found) == _pytree.tree_structure(wanted)
            for got, want in zip(_pytree.tree_leaves(found), _pytree.tree_leaves(wanted), strict=True):
                same(got, want, tolerance)
    return module


def same(got, want, tolerance=1e-5):
    """That two results agree: tensors to a tolerance, other values exactly."""
    if not isinstance(want, torch.Tensor):
        assert type(got) is type(want) and got == want
        return
    assert got.dtype == want.dtype and got.shape == want.shape
    scale = 1.0
    if want.is_floating_point() and want.isfinite().any():
        scale = max(1.0, want[want.isfinite()].abs().max().item())
    torch.testing.assert_close(got, want, rtol=0, atol=tolerance * scale, equal_nan=True)


class Residual(nn.Module):
    """A block of a ResNet, in place as torchvision has it."""

    def __init__(self, channels, width, stride=1):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.norm2 = nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        self.down = nn.Sequential(nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width)) if channels != width else None

    def forward(self, x):
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)), inplace=True)))
        return F.relu_(y.add_(x if self.down is None else self.down(x)))


def resnet(width=8):
    sizes = [(width, width, 1), (width, 2 * width, 2)]
    head = [nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)]
    tail = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * width, 10)]
    return statistics(nn.Sequential(*head, *(Residual(*s) for s in sizes), *tail))


class Inverted(nn.Module):
    """A block of MobileNetV2."""

    def __init__(self, channels, expand=4):
        super().__init__()
        width = channels * expand
        self.body = nn.Sequential(
            *(nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU6(True)),
            *(nn.Conv2d(width, width, 3, 1, 1, groups=width, bias=False), nn.BatchNorm2d(width), nn.Hardswish()),
            *(nn.Conv2d(width, channels, 1, bias=False), nn.BatchNorm2d(channels)),
        )

    def forward(self, x):
        return x + self.body(x)


def statistics(model):
    """The model with running statistics that are not all alike."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.uniform_(-0.5, 0.5)
            module.running_var.uniform_(0.5, 2.0)
    return model


class UNet(nn.Module):
    """With a transposed convolution, a skip connection and resampling."""

    def __init__(self, width=6):
        super().__init__()
        self.inside, self.down = nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, 2 * width, 3, 2, 1)
        self.norm, self.up = nn.GroupNorm(2, 2 * width), nn.ConvTranspose2d(2 * width, width, 4, 2, 1)
        self.outside = nn.Conv2d(2 * width, 2, 1)

    def forward(self, x):
        a = F.leaky_relu(self.inside(x), 0.1)
        b = self.up(F.silu(self.norm(self.down(a))))
        y = self.outside(torch.cat([a, b], 1))
        return F.interpolate(y, scale_factor=2, mode="bilinear", align_corners=False), y.argmax(1)


class ViT(nn.Module):
    def __init__(self, width=16, heads=2):
        super().__init__()
        self.patches, self.first = nn.Conv2d(3, width, 4, 4), nn.Parameter(torch.randn(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, 17, width))
        layer = nn.TransformerEncoderLayer(width, heads, 2 * width, activation="gelu", batch_first=True, norm_first=True)
        self.encoder, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(width, 5)

    def forward(self, x):
        rows = self.patches(x).flatten(2).transpose(1, 2)
        rows = torch.cat([self.first.expand(x.shape[0], -1, -1), rows], 1) + self.places
        return self.head(self.encoder(rows)[:, 0])


class Decoder(nn.Module):
    """GPT-2-like, with rotary positions and a cache of keys and values that goes in and out."""

    def __init__(self, words=50, width=32, heads=4, layers=2):
        super().__init__()
        self.words, self.heads, self.head = nn.Embedding(words, width), heads, nn.Linear(width, words, bias=False)
        make = lambda: nn.ModuleDict(  # noqa: E731 # one block
            {
                "norm": nn.LayerNorm(width),
                "qkv": nn.Linear(width, 3 * width),
                "out": nn.Linear(width, width),
                "rms": nn.RMSNorm(width),
                "up": nn.Linear(width, 4 * width),
                "down": nn.Linear(4 * width, width),
            }
        )
        self.blocks = nn.ModuleList(make() for _ in range(layers))

    def forward(self, ids, cache):
        batch, length = ids.shape
        past = cache[0][0].shape[2]
        at = torch.arange(past, past + length)
        seen = torch.arange(past + length)[None, :] <= at[:, None]
        x, new = self.words(ids), []
        angle = at[:, None] * (100.0 ** -torch.arange(0, 1, 0.25))
        for block, (old_k, old_v) in zip(self.blocks, cache, strict=True):
            q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in block["qkv"](block["norm"](x)).chunk(3, -1))
            q, k = (torch.cat([t[..., :4] * angle.cos(), t[..., 4:] * angle.sin()], -1) for t in (q, k))
            k, v = torch.cat([old_k, k], 2), torch.cat([old_v, v], 2)
            new.append((k, v))
            a = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
            x = x + block["out"](a.transpose(1, 2).reshape(batch, length, -1))
            x = x + block["down"](F.gelu(block["up"](block["rms"](x)), approximate="tanh"))
        return {"logits": self.head(x), "cache": new}
