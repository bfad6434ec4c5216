"""Random numbers of keys: against TVM's Threefry in Python's integers, itself against a vector that its authors published."""

import numpy as np
import pytest
from expressions import both_ways, evaluated, interpreted
from oracle import values

from relayc import relay
from relayc.symbolic import symbol

MASK = (1 << 64) - 1
ROTATIONS = ((14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32))


def key_words(key, step):
    parity = 0x1BD11BDAA9FC1A22 ^ key[0] ^ key[1] ^ key[2] ^ key[3]
    words = [[*key, parity][(step + j) % 5] for j in range(4)]
    return [*words[:3], (words[3] + step) & MASK]


def block(key, counter):
    """Threefry-4x64 of 20 rounds, without the key after the last one."""
    a, b, c, d = counter
    for i in range(20):
        if i % 4 == 0:
            a, b, c, d = ((x + k) & MASK for x, k in zip((a, b, c, d), key_words(key, i // 4), strict=True))
        (p, q), turned = ROTATIONS[i % 8], lambda x, by: (x << by | x >> (64 - by)) & MASK
        a, c = (a + b) & MASK, (c + d) & MASK
        a, b, c, d = a, turned(d, q) ^ c, c, turned(b, p) ^ a
    return [a, b, c, d]


def further(high, low):
    """One bit, further to the right by one place of 128."""
    place = ((high << 64) | low) >> 1
    return [place >> 64, place & MASK]


def generate(key, count):
    """The numbers of a key, and the key behind them."""
    state = list(key)
    if state[7] >= MASK - count:
        if state[8] == state[9] == 0:
            state = [*block(state[:4], [MASK] * 4), 0, 0, 0, 0, 1 << 63, 0]
        else:
            state = [*state[:4], state[4] | state[8], state[5] | state[9], 0, 0, *further(*state[8:])]
    whole = count // 4
    numbers = [word for i in range(whole) for word in block(state[:4], [(c + i) & MASK for c in state[4:8]])]
    last = block(state[:4], [*state[4:7], (state[7] + 4 * whole) & MASK])
    after = [*state[:6], 0, (state[7] + -(-count // 4) * 4) & MASK, *state[8:]]
    return after, [*numbers, *last[: count % 4]]


def split(key):
    if key[8] == key[9] == 0:
        hashed = block(key[:4], key[4:8])
        return [[*hashed, path, 0, 0, 0, 1 << 62, 0] for path in (0, 1 << 63)]
    place = further(*key[8:])
    return [[*key[:8], *place], [*key[:4], key[4] | key[8], key[5] | key[9], *key[6:8], *place]]


FRESH = [0x0123456789ABCDEF, 7, MASK, 1 << 63, 0, 0, 0, 0, 1 << 63, 0]
KEYS = {
    "fresh": FRESH,
    "counted": [*FRESH[:4], 3 << 62, 0, 0, MASK - 40, 1 << 61, 0],
    "without room": [*FRESH[:4], 5 << 61, 0, 0, MASK - 3, 1, 0],
    "far along its path": [*FRESH[:4], 5 << 61, 1 << 62, 0, MASK - 3, 0, 1 << 9],
    "spent": [*FRESH[:4], 9, 10, 0, MASK, 0, 0],
}


def array(words):
    return np.array(words, np.uint64)


def test_the_reference_has_the_known_answer():
    published = [0x09218EBDE6C85537, 0x55941F5266D86105, 0x4BD25E16282434DC, 0xEE29EC846BD2E40B]
    assert [(x + k) & MASK for x, k in zip(block([0] * 4, [0] * 4), key_words([0] * 4, 5), strict=True)] == published


def test_a_key_of_a_seed():
    seed = (11 << 192) + (5 << 64) + 3
    np.testing.assert_array_equal(relay.random.threefry_key(seed).data.numpy(), array([3, 5, 0, 11, 0, 0, 0, 0, 1 << 63, 0]))


@pytest.mark.parametrize("shape", [(), (4,), (3, 7), (0, 2)])
def test_numbers_of_keys(shape, subtests):
    for name, key in KEYS.items():
        with subtests.test(name):
            after, numbers = interpreted(lambda k: relay.random.threefry_generate(k, shape), array(key))
            expected = generate(key, int(np.prod(shape)))
            np.testing.assert_array_equal(after, array(expected[0]))
            np.testing.assert_array_equal(numbers, array(expected[1]).reshape(shape))


def test_splits_of_keys(subtests):
    for name, key in KEYS.items():
        with subtests.test(name):
            np.testing.assert_array_equal(interpreted(relay.random.threefry_split, array(key)), array(split(key)))


@both_ways
@pytest.mark.parametrize("count", [2, 11])
def test_as_many_numbers_as_a_size_says(count, run):
    """Sizes that are known only when the program runs."""
    n = symbol("n")
    x = values((count, 2))
    program = lambda k, x: relay.random.threefry_generate(k, (n, 2))  # noqa: E731 (an argument, not a definition)
    after, numbers = run(program, array(FRESH), x, shapes=[(10,), (n, 2)])
    expected = generate(FRESH, 2 * count)
    np.testing.assert_array_equal(after, array(expected[0]))
    np.testing.assert_array_equal(numbers, array(expected[1]).reshape(count, 2))


def fractions(key, count, dtype):
    numbers = array(generate(key, count)[1])
    if dtype == "float32":
        return ((numbers.astype(np.uint32) >> np.uint32(9)) | np.uint32(127 << 23)).view(np.float32) - np.float32(1)
    return ((numbers >> np.uint64(12)) | np.uint64(1023 << 52)).view(np.float64) - 1


@both_ways
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_distributions(dtype, run):
    after, found = run(lambda k: relay.random.uniform(k, (5, 7), dtype, low=-2.0, high=3.5), array(FRESH))
    np.testing.assert_array_equal(after, array(generate(FRESH, 35)[0]))
    np.testing.assert_allclose(found.reshape(-1), fractions(FRESH, 35, dtype) * 5.5 - 2, rtol=1e-6, atol=1e-6)
    after, found = run(lambda k: relay.random.normal(k, (5, 7), dtype, mean=4.0, scale=0.5), array(FRESH))
    np.testing.assert_array_equal(after, array(generate(FRESH, 70)[0]))
    first, second = np.split(fractions(FRESH, 70, dtype), 2)
    expected = np.sqrt(-2 * np.log(1 - first)) * np.sin(2 * np.pi * second) * 0.5 + 4
    np.testing.assert_allclose(found.reshape(-1), expected, rtol=1e-5, atol=1e-5)
    scale = np.asarray(values((), dtype))
    _, scaled = run(lambda k, s: relay.random.normal(k, (5, 7), dtype, mean=4.0, scale=s), array(FRESH), scale)
    np.testing.assert_allclose(scaled - 4, (found - 4) * scale / 0.5, rtol=1e-4, atol=1e-5)


@both_ways
@pytest.mark.parametrize("shapes", [None, [(10,), (symbol("n"), 5)]], ids=["numbers", "symbols"])
def test_positions_by_probabilities(shapes, run):
    weights = np.array([[0.0, 3.0, 1.0, -5.0, 0.5], [2.0, 0.0, 0.0, 0.0, 2.0]], np.float32)
    after, found = run(lambda k, w: relay.random.multinomial(k, w, 100), array(FRESH), weights, shapes=shapes)
    np.testing.assert_array_equal(after, array(generate(FRESH, 200)[0]))
    ends = np.maximum(weights, 0).cumsum(1) / np.maximum(weights, 0).sum(1, keepdims=True)
    drawn = fractions(FRESH, 200, "float32").reshape(2, 100)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, (ends[:, :, None] > drawn[:, None]).argmax(1))
    assert set(found[0]) == {1, 2, 4} and set(found[1]) == {0, 4}


def test_a_number_at_the_end_of_a_share_is_in_the_next_one():
    (drawn,) = fractions(FRESH, 1, "float32")
    shares = np.array([drawn, 1 - drawn], np.float32)
    assert evaluated(lambda k, w: relay.random.multinomial(k, w, 1), array(FRESH), shares)[1] == 1


def test_numbers_alone_are_those_of_the_dialect():
    found = evaluated(lambda k: relay.op.call("random.threefry_generate", k, out_shape=(3, 5), dtype="uint64"), array(FRESH)[:8])
    assert found.dtype == "uint64" and found.shape == (3, 5) and len({*found.ravel().tolist()}) == 15


def test_what_is_no_key_is_refused():
    x = relay.var("x", shape=(9,), dtype="uint64")
    with pytest.raises(ValueError, match=r"key: expected tensor<10xui64>, found tensor<9xui64>"):
        relay.transform.InferTypeLocal(relay.random.threefry_split(x))
    key = relay.var("k", shape=(10,), dtype="uint64")
    with pytest.raises(ValueError, match=r"random\.threefry_generate.*key: expected .*8.*, found"):
        relay.transform.InferTypeLocal(relay.op.call("random.threefry_generate", x, out_shape=(3,), dtype="uint64"))
    with pytest.raises(ValueError, match="out_dtype: expected float32 or float64, found int32"):
        relay.transform.InferTypeLocal(relay.random.uniform(key, (3,), "int32"))
    with pytest.raises(ValueError, match=r"probs: expected a shape \[..., positions\], found"):
        relay.transform.InferTypeLocal(relay.random.multinomial(key, relay.var("p", shape=()), 3))


def test_in_text():
    key = relay.var("k", shape=(10,), dtype="uint64")
    function = relay.Function([key], relay.random.normal(key, (2, 3)))
    assert relay.structural_equal(relay.parse_expr(function.astext()), function)
