"""Random bits: against Threefry in numpy, itself against the vectors that its authors published, and their statistics."""

import numpy as np
import pytest
from support import run

ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)


def threefry(key, counter):
    """Threefry-2x32 of 20 rounds, of keys and counters as pairs of uint32."""
    keys = [np.uint32(key[0]), np.uint32(key[1])]
    keys.append(keys[0] ^ keys[1] ^ np.uint32(0x1BD11BDA))
    with np.errstate(over="ignore"):
        x, y = (np.asarray(c, np.uint32) + k for c, k in zip(counter, keys[:2], strict=True))
        for i in range(20):
            x = x + y
            by = np.uint32(ROTATIONS[i % 8])
            y = (y << by | y >> (np.uint32(32) - by)) ^ x
            if i % 4 == 3:
                step = i // 4 + 1
                x, y = x + keys[step % 3], y + keys[(step + 1) % 3] + np.uint32(step)
    return x, y


@pytest.mark.parametrize(
    ("key", "counter", "expected"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_the_reference_has_the_known_answers(key, counter, expected):
    assert tuple(int(w) for w in threefry(key, counter)) == expected


@pytest.mark.parametrize("shape", [(), (3,), (2, 5, 13), (0, 4)])
def test_words_of_positions(shape):
    key = np.array([0xDEADBEEF, 7], np.uint32)
    at = np.arange(np.prod(shape, dtype=int), dtype=np.uint32)
    x, y = threefry(key, (at, np.zeros_like(at)))
    np.testing.assert_array_equal(run("random.threefry_generate", key, out_shape=shape), x.reshape(shape))
    both = x.astype("uint64") | y.astype("uint64") << np.uint64(32)
    np.testing.assert_array_equal(run("random.threefry_generate", key, out_shape=shape, dtype="uint64"), both.reshape(shape))


def test_bits_are_even_and_independent():
    n = 1 << 16
    words = run("random.threefry_generate", np.array([1, 2], np.uint32), out_shape=(n,))
    bits = np.unpackbits(words.view(np.uint8).reshape(n, 4), axis=1).astype(float) - 0.5
    # Means and correlations have a deviation of 0.5 / sqrt(n) and 0.25 / sqrt(n): six of them, of some thousand values.
    assert np.abs(bits.mean(0)).max() < 3 / np.sqrt(n)
    assert np.abs(bits.T @ bits / n - np.eye(32) / 4).max() < 1.5 / np.sqrt(n)
    assert np.abs(bits[1:].T @ bits[:-1] / n).max() < 1.5 / np.sqrt(n)
