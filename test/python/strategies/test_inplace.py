"""Concatenations in place: which of them need no kernel, and that results are right where tensors lie within others."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from oracle import values
from support import program

from relayc.dialects.mlir import ir
from relayc.dialects.relay import build
from relayc.pipelines.driver.compile import compile

X = values((1, 3, 5, 7), "float32")


class Numpy:
    """What the operators of the cases compute. `soft` reads all of a tensor, so that it fuses with nothing before it."""

    exp, tanh = staticmethod(np.exp), staticmethod(np.tanh)

    @staticmethod
    def soft(x):
        return np.exp(x) / np.exp(x).sum(1, keepdims=True)

    @staticmethod
    def join(*parts, axis=1):
        return np.concatenate(parts, axis)


class Relay:
    """The same as operators of a program."""

    @staticmethod
    def exp(x):
        return build("exp", x)

    @staticmethod
    def tanh(x):
        return build("tanh", x)

    @staticmethod
    def soft(x):
        return build("nn.softmax", x, axis=1)

    @staticmethod
    def join(*parts, axis=1):
        return build("concatenate", *parts, axis=axis)


def chain(o, x):
    """A dense block: each concatenation joins the one before and a new tensor."""
    x = o.exp(x)
    for _ in range(3):
        x = o.join(x, o.tanh(o.soft(x)))
    return [o.soft(x)]


def dense(o, x):
    """A dense block that joins all tensors so far, each time."""
    parts = [o.tanh(x)]
    for _ in range(3):
        parts.append(o.soft(o.join(*parts) if len(parts) > 1 else parts[0]))
    return [o.soft(o.join(*parts))]


def two_places(o, x):
    """A tensor that two concatenations want at different places: one of them copies."""
    a, b = o.exp(x), o.tanh(x)
    return [o.soft(o.join(a, b)), o.soft(o.join(b, a))]


def twice(o, x):
    a = o.exp(x)
    return [o.soft(o.join(a, a))]


def of_an_input(o, x):
    return [o.soft(o.join(x, o.exp(x)))]


def returned(o, x):
    """What main returns has its own memory, whole or part."""
    a, b = o.exp(x), o.tanh(x)
    whole = o.join(a, b)
    return [whole, o.soft(o.join(o.soft(whole), a))]


def part_returned(o, x):
    a, b = o.exp(x), o.tanh(x)
    return [a, o.soft(o.join(a, b))]


def inner_axis(o, x):
    """Rows of the parts alternate in the result."""
    return [o.soft(o.join(o.soft(x), o.soft(o.exp(x)), axis=2))]


def long_lived(o, x):
    """A part that is read after the whole has been."""
    a, b = o.soft(x), o.soft(o.exp(x))
    whole = o.soft(o.join(a, b))
    return [o.join(o.soft(whole), o.soft(a), o.soft(b))]


@pytest.mark.parametrize(
    "body, copies",
    [
        (chain, 0),
        (dense, 0),
        (two_places, 1),
        (twice, 1),
        (of_an_input, 1),
        (returned, 1),
        (part_returned, 1),
        (inner_axis, 1),
        (long_lived, 1),
    ],
    ids=lambda v: v.__name__ if isinstance(v, Callable) else "",
)
def test_concatenations(body: Callable[..., Sequence], copies: int):
    def results(x: ir.Value) -> Sequence[ir.Value]:
        return body(Relay, x)

    module = compile(program(results, [X]))
    found = module["main"](X)
    for a, b in zip(found if isinstance(found, (list, tuple)) else [found], body(Numpy, X), strict=True):
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-5, atol=1e-6)
    assert sum("concatenate" in row.kernel.name for row in module.profile([X], repeat=1).rows) == copies
