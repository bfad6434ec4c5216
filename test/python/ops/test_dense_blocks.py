"""nn.dense_blocks: products with weights of a few bits, against the same weights as floats."""

import numpy as np
import pytest
from oracle import values
from support import Const, program, run_program
from symbolic_ops import symbolic_program, tensor

import relayc
from relayc.dialects.relay import RelayError, build

BLOCK = 32


def weights(columns, blocks, bits, zeros, block=BLOCK):
    """(operands after the data, weights as floats [columns, depth])."""
    rng, strips = np.random.default_rng(bits), -(-columns // 16)
    numbers = rng.integers(0, 1 << bits, (strips * 16, blocks * block), np.uint32)
    scales = values((blocks, strips * 16), "float32")
    centres = {
        "floats": lambda: values((blocks, strips * 16), "float32"),
        "bytes": lambda: rng.integers(0, 1 << bits, scales.shape).astype(np.uint8),
        "one": lambda: np.full((1, 1), 1 << (bits - 1), np.uint8),
    }[zeros]()
    whole = (numbers - np.broadcast_to(centres, scales.shape).T.repeat(block, 1).astype(np.float32)) * scales.T.repeat(block, 1)
    parts = numbers.reshape(len(numbers), -1, 32 // bits) << np.arange(0, 32, bits, dtype=np.uint32)
    words = np.bitwise_or.reduce(parts, 2).reshape(strips, 16, -1).transpose(0, 2, 1)
    return [words, scales, centres], whole[:columns].astype(np.float32)


def assert_product(found, data, whole):
    """Sums of 1e2 products in float32, in which a weight of b bits is off by 2^b roundings of its scale at most."""
    expected = data.astype(np.float64) @ whole.astype(np.float64).T
    bound = np.abs(data).astype(np.float64) @ np.abs(whole).astype(np.float64).T
    assert found.shape == expected.shape and found.dtype == np.float32
    assert np.all(np.abs(found - expected) <= 1e-6 * (bound + bound.max()))


def product(operands, units, bits, block=BLOCK):
    return lambda x, *rest: [build("nn.dense_blocks", x, *rest[: len(operands)], units=units, bits=bits, block_size=block)]


@pytest.mark.parametrize(("bits", "zeros"), [(2, "bytes"), (4, "one"), (4, "floats"), (8, "bytes")])
def test_agrees_with_floats(bits, zeros):
    """A token, two, some, and more than a task takes; columns that fill no strip; a piece of the depth that is not whole."""
    operands, whole = weights(90, 11, bits, zeros)
    inputs = [values((rows, 11 * BLOCK), "float32") for rows in (1, 2, 9, 200)]
    call = product(operands, 90, bits)
    body = lambda *given: [call(x, *given[len(inputs) :])[0] for x in given[: len(inputs)]]  # noqa: E731 (an argument, not a definition)
    for data, found in zip(inputs, run_program(body, [*inputs, *map(Const, operands)]), strict=True):
        assert_product(found, data, whole)


@pytest.mark.parametrize("mcpu", ["x86-64", "x86-64-v3", "x86-64-v4"])
def test_vectors_of_every_width(mcpu):
    target = relayc.Target("cpu", mcpu=mcpu)
    if not target.is_host:
        pytest.skip(f"this machine lacks features of {mcpu}")
    operands, whole = weights(56, 3, 4, "bytes", 16)
    inputs = [values((rows, 48), "float32") for rows in (1, 7)]
    call = product(operands, 56, 4, 16)
    body = lambda *given: [call(x, *given[len(inputs) :])[0] for x in given[: len(inputs)]]  # noqa: E731 (an argument, not a definition)
    for data, found in zip(inputs, run_program(body, [*inputs, *map(Const, operands)], target=target), strict=True):
        assert_product(found, data, whole)


def test_what_follows_is_in_the_same_kernel():
    operands, whole = weights(40, 2, 4, "one")
    data, bias, other = values((3, 2, 64), "float32"), values((40,), "float32"), values((2, 40), "float32")

    def body(x, bias, other, *rest):
        biased = build("nn.bias_add", product(operands, 40, 4)(x, *rest)[0], bias, axis=2)
        return [build("nn.relu", build("add", biased, other))]

    arrays = [data, Const(bias), other, *map(Const, operands)]
    module = relayc.compile(program(body, arrays))
    assert [k.schedule.split()[0] for k in module.kernels] == ["dense_blocks"]
    exact = np.maximum(data.astype(np.float64) @ whole.T.astype(np.float64) + bias + other, 0)
    np.testing.assert_allclose(module["main"](data, other), exact, rtol=1e-5, atol=1e-5 * np.abs(exact).max())


def test_any_number_of_rows():
    operands, whole = weights(72, 9, 4, "one")
    module = relayc.compile(symbolic_program(product(operands, 72, 4), [tensor("float32[b, s, 288]"), *map(Const, operands)]))
    assert [k.schedule.split()[0] for k in module.kernels] == ["dense_blocks"]
    for sizes in ((0, 3), (1, 1), (2, 1), (3, 1), (2, 7), (5, 41)):
        data = values((*sizes, 288), "float32")
        found = module["main"](data)
        assert found.shape == (*sizes, 72)
        if data.size:
            assert_product(found.reshape(-1, 72), data.reshape(-1, 288), whole)


@pytest.mark.parametrize(
    ("units", "bits", "block", "message"),
    [(40, 3, 32, "bits"), (40, 4, 24, "block_size"), (60, 4, 32, "weight"), (40, 4, 16, "weight"), (40, 8, 32, "weight")],
)
def test_wrong_operands_are_refused(units, bits, block, message):
    operands, _ = weights(40, 2, 4, "one")
    with pytest.raises(RelayError, match=message):
        program(product(operands, units, bits, block), [values((1, 64), "float32"), *map(Const, operands)])
