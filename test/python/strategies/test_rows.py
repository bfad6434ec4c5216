"""Softmax, normalisations and reductions over rows of awkward lengths, against numpy in float64, on one thread and on two."""

import numpy as np
import pytest
from accuracy import bound_of
from contractions import Case, check
from oracle import values

from relayc.dialects.relay import build
from relayc.pipelines.context.target import Target

SHAPES = [(1, 1), (1, 1009), (7, 1), (3, 8), (5, 13), (64, 64), (2, 197, 65), (31, 3, 33), (256, 100), (1, 4096), (300, 384), (1, 5003)]

# Sums of n normal numbers are off by about sqrt(n) roundings, each of 6e-8; exponentials and roots by a few.
CLOSE = 2e-6


def case(name: str, expected: np.ndarray, *arrays: np.ndarray, bound: np.ndarray | None = None, **attrs) -> Case:
    """An operator; without a bound one whose results are of the order of 1, or off in proportion to their size."""
    form = f"{name} of {[a.shape for a in arrays]} {attrs}"
    bound = CLOSE * (1 + np.abs(expected)) if bound is None else bound
    return Case(form, lambda *v: build(name, *v, **attrs), arrays, expected, bound)


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def normalized(x: np.ndarray, axes: tuple[int, ...], epsilon: float) -> np.ndarray:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


def test_softmax():
    cases = []
    for shape in SHAPES:
        for axis in range(len(shape)):
            x = values(shape) * 3
            expected = softmax(x.astype(float), axis)
            cases.append(case("nn.softmax", expected, x, axis=axis))
        cases.append(case("nn.log_softmax", np.log(expected), x))
    check(cases)


def test_softmax_of_large_and_infinite_values():
    """What is subtracted is the largest element: nothing overflows, and what is masked by -inf is 0."""
    x = values((9, 37))
    large, masked = x * 1e4, np.where(np.arange(37) % 3 == 0, -np.inf, x).astype(np.float32)
    check([case("nn.softmax", softmax(v.astype(float), 1), v) for v in (large, masked, large + 3e38 - 1e38)])


def test_layer_and_rms_norm():
    cases = []
    for shape in SHAPES:
        x, gamma, beta = values(shape) * 2 + 1, values(shape[-1:], seed=1), values(shape[-1:], seed=2)
        wide = x.astype(float)
        cases.append(case("nn.layer_norm", normalized(wide, (-1,), 1e-5) * gamma + beta, x, gamma, beta))
        cases.append(case("nn.rms_norm", wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-5) * gamma, x, gamma))
    check(cases)


def test_instance_and_group_norm():
    cases = []
    for shape, groups in [((1, 6, 7, 11), 3), ((2, 8, 1, 1), 4), ((1, 4, 33, 35), 1), ((3, 12, 5), 12), ((1, 64, 16, 16), 32)]:
        x, gamma, beta = values(shape) * 2 + 1, values(shape[1:2], seed=1), values(shape[1:2], seed=2)
        wide = x.astype(float)
        g, b = (v.reshape(-1, *[1] * (len(shape) - 2)) for v in (gamma, beta))
        alone = normalized(wide, tuple(range(2, len(shape))), 1e-5) * g + b
        together = normalized(wide.reshape(shape[0], groups, -1), (2,), 1e-5).reshape(shape) * g + b
        cases += [case("nn.instance_norm", alone, x, gamma, beta), case("nn.group_norm", together, x, gamma, beta, num_groups=groups)]
    check(cases)


@pytest.mark.parametrize("shape", [(7,), (1, 4099), (4099, 1), (5, 13), (130, 130), (3, 200, 5), (2, 3, 64, 17), (1, 1, 1031)])
def test_reductions(shape):
    cases = []
    x = values(shape)
    wide = x.astype(float)
    for axis in [*((d,) for d in range(len(shape))), tuple(range(len(shape))), (0, len(shape) - 1)]:
        axis = tuple(dict.fromkeys(axis))
        terms = int(np.prod([shape[d] for d in axis]))
        bound = bound_of(terms, wide.sum(axis), np.abs(wide).sum(axis), "float32")
        cases.append(case("sum", wide.sum(axis), x, axis=axis, bound=bound))
        cases.append(case("mean", wide.mean(axis), x, axis=axis, bound=bound / terms + 2.0**-23 * np.abs(wide.mean(axis))))
        cases.append(case("max", wide.max(axis), x, axis=axis, bound=np.zeros(())))
    check(cases)


@pytest.mark.parametrize("mcpu", ["x86-64", "x86-64-v3", "x86-64-v4"])
def test_every_level_of_the_instruction_set(mcpu):
    target = Target("cpu", mcpu=mcpu)
    if not target.is_host:
        pytest.skip(f"this machine lacks features of {mcpu}")
    x, gamma, beta = values((37, 101)), values((101,), seed=1), values((101,), seed=2)
    wide = x.astype(float)
    cases = [case("nn.softmax", softmax(wide, axis), x, axis=axis) for axis in (0, 1)]
    cases.append(case("nn.layer_norm", normalized(wide, (1,), 1e-5) * gamma + beta, x, gamma, beta))
    check([*cases, case("mean", wide.mean(0), x, axis=(0,))], target=target)
