"""Small networks that numpy trains in a second or two: on pictures of digits, and on a language whose words follow from those before."""

import functools
from dataclasses import dataclass

import numpy as np
import onnx
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto, helper
from onnx_models import model_of

FONT = ("75557", "26227", "71747", "71717", "55711", "74717", "74757", "71222", "75757", "75717")
"""Each digit as five rows of three pixels, the bits of an octal number."""
WORDS, CONTEXT, WIDTH = 8, 3, 16


@dataclass(frozen=True)
class Trained:
    """A trained model with the output y, and inputs that it has not seen, with the number that y is to be largest at."""

    model: onnx.ModelProto
    inputs: np.ndarray
    labels: np.ndarray
    batch: int = 100

    def samples(self):
        """Inputs and labels in batches."""
        name = self.model.graph.input[0].name
        for i in range(0, len(self.labels), self.batch):
            yield {name: self.inputs[i : i + self.batch], "labels": self.labels[i : i + self.batch]}

    def accuracy(self, run):
        """The share of right answers of a function of the inputs."""
        name = self.model.graph.input[0].name
        return float(np.mean(np.concatenate([run(s[name]).argmax(-1) == s["labels"] for s in self.samples()])))


def metric(outputs, sample):
    """The share of right answers."""
    return np.mean(outputs["y"].argmax(-1) == sample["labels"])


def digits(count, rng):
    """Noisy pictures [count, 1, 8, 8] of digits, at nine places, and the digits."""
    font = np.array([[[int(row) >> bit & 1 for bit in (2, 1, 0)] for row in glyph] for glyph in FONT], np.float32)
    labels = rng.integers(0, 10, count)
    pictures = rng.normal(0, 0.15, (count, 1, 8, 8)).astype(np.float32)
    for image, label, (i, j) in zip(pictures, labels, rng.integers(1, 4, (count, 2)), strict=True):
        image[0, i - 1 : i + 4, j : j + 3] += font[label]
    return pictures, labels


def sentences(count, rng):
    """Contexts of three words, and the word that follows: a sum that depends on the order."""
    words = rng.integers(0, WORDS, (count, CONTEXT))
    return words, (words @ [1, 2, 5] + words[:, 0] * words[:, 1]) % WORDS


class Adam:
    """Adam on a list of parameters, which it changes in place."""

    def __init__(self, parameters, rate=3e-3):
        self.parameters, self.rate, self.step = parameters, rate, 0
        self.moments = [(np.zeros_like(p), np.zeros_like(p)) for p in parameters]

    def update(self, gradients):
        self.step += 1
        for p, g, (m, v) in zip(self.parameters, gradients, self.moments, strict=True):
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            p -= self.rate * (m / (1 - 0.9**self.step)) / (np.sqrt(v / (1 - 0.999**self.step)) + 1e-8)


def weights(rng, *shape):
    return (rng.standard_normal(shape) * np.sqrt(2 / (np.prod(shape[1:]) if len(shape) > 2 else shape[0]))).astype(np.float32)


def slope(scores, labels):
    """The gradient of the mean cross entropy by the scores."""
    found = np.exp(scores - scores.max(-1, keepdims=True))
    found /= found.sum(-1, keepdims=True)
    found[np.arange(len(labels)), labels] -= 1
    return found / len(labels)


def columns(x):
    """The 3 x 3 surroundings of each pixel, as rows [pixels of all images, channels x 9]."""
    found = sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), axis=(2, 3))
    return found.transpose(0, 2, 3, 1, 4, 5).reshape(-1, x.shape[1] * 9)


def images(rows):
    """Rows for each pixel of pictures of 8 x 8 as [images, channels, 8, 8]."""
    return rows.reshape(-1, 8, 8, rows.shape[-1]).transpose(0, 3, 1, 2)


def typed(model, count):
    """The model with a type for y, which the checker of the onnx package wants."""
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, [100, count]))
    return model


@functools.cache
def network():
    """Two convolutions with a sum of both, a maximum pooling and a product, on pictures of digits."""
    rng = np.random.default_rng(0)
    w1, b1, w2, b2 = weights(rng, 8, 1, 3, 3), np.zeros(8, np.float32), weights(rng, 8, 8, 3, 3), np.zeros(8, np.float32)
    w3, b3 = weights(rng, 128, 10), np.zeros(10, np.float32)
    optimiser = Adam([w1, b1, w2, b2, w3, b3], 1e-2)
    for _ in range(150):
        x, labels = digits(32, rng)
        around = columns(x)
        h1 = np.maximum(images(around @ w1.reshape(8, -1).T + b1), 0)
        around1 = columns(h1)
        h2 = np.maximum(h1 + images(around1 @ w2.reshape(8, -1).T + b2), 0)
        windows = h2.reshape(32, 8, 4, 2, 4, 2)
        pooled = windows.max((3, 5))
        flat = pooled.reshape(32, -1)
        d = slope(flat @ w3 + b3, labels)
        dflat = (d @ w3.T).reshape(32, 8, 4, 1, 4, 1)
        dh2 = ((windows == pooled[:, :, :, None, :, None]) * dflat).reshape(h2.shape) * (h2 > 0)
        back = w2[:, :, ::-1, ::-1].transpose(1, 0, 2, 3).reshape(8, -1)
        dh1 = (dh2 + images(columns(dh2) @ back.T)) * (h1 > 0)
        by_w1, by_w2 = (
            (dh.transpose(1, 0, 2, 3).reshape(8, -1) @ a).reshape(w.shape) for dh, a, w in ((dh1, around, w1), (dh2, around1, w2))
        )
        optimiser.update([by_w1, dh1.sum((0, 2, 3)), by_w2, dh2.sum((0, 2, 3)), flat.T @ d, d.sum(0)])
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], name="first", pads=[1] * 4),
        helper.make_node("Relu", ["c1"], ["h1"]),
        helper.make_node("Conv", ["h1", "w2", "b2"], ["c2"], name="second", pads=[1] * 4),
        helper.make_node("Add", ["h1", "c2"], ["s"]),
        helper.make_node("Relu", ["s"], ["h2"]),
        helper.make_node("MaxPool", ["h2"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "w3", "b3"], ["y"], name="last"),
    ]
    constants = {"w1": w1, "b1": b1, "w2": w2, "b2": b2, "w3": w3, "b3": b3}
    model = typed(model_of(nodes, {"x": [100, 1, 8, 8]}, initializers=constants, ir_version=9), 10)
    return Trained(model, *digits(1000, rng))


@functools.cache
def language():
    """Two layers of products with a sum of both, on three embedded words. Gives scores of the next word."""
    rng = np.random.default_rng(1)
    depth = CONTEXT * WIDTH
    table, w1, w2, w3 = weights(rng, WORDS, WIDTH), weights(rng, depth, 128), weights(rng, 128, depth), weights(rng, depth, WORDS)
    table *= 2
    b1, b2 = np.zeros(128, np.float32), np.zeros(depth, np.float32)
    optimiser = Adam([table, w1, b1, w2, b2, w3], 6e-3)
    for _ in range(300):
        words, labels = sentences(128, rng)
        e = table[words].reshape(128, depth)
        h = np.maximum(e @ w1 + b1, 0)
        r = e + h @ w2 + b2
        d = slope(r @ w3, labels)
        dr = d @ w3.T
        dh = dr @ w2.T * (h > 0)
        de = dr + dh @ w1.T
        by_table = np.zeros_like(table)
        np.add.at(by_table, words, de.reshape(128, CONTEXT, WIDTH))
        optimiser.update([by_table, e.T @ dh, dh.sum(0), h.T @ dr, dr.sum(0), r.T @ d])
    nodes = [
        helper.make_node("Gather", ["table", "words"], ["g"]),
        helper.make_node("Reshape", ["g", "shape"], ["e"]),
        helper.make_node("MatMul", ["e", "w1"], ["p1"], name="up"),
        helper.make_node("Add", ["p1", "b1"], ["a1"]),
        helper.make_node("Relu", ["a1"], ["h"]),
        helper.make_node("MatMul", ["h", "w2"], ["p2"], name="down"),
        helper.make_node("Add", ["b2", "p2"], ["a2"]),
        helper.make_node("Add", ["e", "a2"], ["r"]),
        helper.make_node("MatMul", ["r", "w3"], ["y"], name="scores"),
    ]
    constants = {"table": table, "w1": w1, "b1": b1, "w2": w2, "b2": b2, "w3": w3, "shape": np.array([-1, depth])}
    model = model_of(nodes, {"words": (TensorProto.INT64, [100, CONTEXT])}, initializers=constants, ir_version=9)
    return Trained(typed(model, WORDS), *sentences(1000, rng))
