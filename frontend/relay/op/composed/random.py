"""Random numbers of keys that are values: Threefry, bit for bit as TVM draws it, and distributions of its numbers.

A key is uint64 [10]: four words of a hash key, two of the path of splits, two of the counter, of which the last one counts, and two with
one bit, the place of the next split in the path. An operator gives the key back, advanced by what it has drawn. TVM leaves open how a key
goes on whose counter and path are both full; here the hash of a counter of ones, as Claessen and Palka have it, is the next key.
"""

from collections.abc import Sequence
from math import pi

from relayc.dialects.relay.errors import check
from relayc.dialects.relay.types import TensorType
from relayc.frontend.converter import Tensor, constant, emit
from relayc.frontend.relay.op.composed.registry import composed
from relayc.frontend.relay.op.composed.terms import Term
from relayc.frontend.sizes import size_tensor
from relayc.frontend.steps import cast
from relayc.symbolic import Size, product

_KEY = TensorType((10,), "uint64")
_FULL = (1 << 64) - 1
_FIRST, _SECOND = 1 << 63, 1 << 62
"""The place of the first split in a path, and of the second."""
_FLOATS = {"float32": ("uint32", 9, 127 << 23), "float64": ("uint64", 12, 1023 << 52)}
"""Unsigned integers of the size of a float, how many bits of them are no fraction, and the bits of 1."""


def _words(*words: int) -> Term:
    return Term(constant(list(words), "uint64"))


def _joined(*parts: Term) -> Term:
    return Term(emit("concatenate", *(part.tensor for part in parts), axis=0))


def _with_bits(words: Term, bits: Term) -> Term:
    return Term(emit("bitwise_or", words.tensor, bits.tensor))


def _shifted_right(words: Term, by: int) -> Term:
    return Term(emit("right_shift", words.tensor, constant(by, words.tensor.dtype)))


def _hash(key: Term, counter: Term) -> Term:
    state = _joined(key, counter).tensor
    return Term(emit("random.threefry_generate", state, out_shape=(4,), dtype="uint64"))


class _Key:
    """The parts of a key.

    Attributes:
      hash, path, counter, place: of four, two, two and two words.
      is_spent: whether the path has no place for another split.
    """

    def __init__(self, key: Tensor) -> None:
        check(key.type == _KEY, "key", _KEY, key.type)
        whole = Term(key)
        self.hash, self.path, self.counter, self.place = (whole.part(0, *bounds) for bounds in ((0, 4), (4, 6), (6, 8), (8, 10)))
        self._high, self._low = self.place.part(0, 0), self.place.part(0, 1)
        self.is_spent = self._high.eq(0) & self._low.eq(0)

    def extended(self) -> Term:
        """The path to the second half of a split."""
        return _with_bits(self.path, self.place)

    def next_place(self) -> Term:
        """The place of the split that follows: a bit further to the right."""
        high, low = _shifted_right(self._high, 1), _shifted_right(self._low, 1)
        return _joined(high, self._high.eq(1).where(_words(_FIRST), self._high.eq(0).where(low, 0)))


def _with_room(key: Tensor, count: Tensor) -> Term:
    """The key, or the next one where its counter has no room for as many numbers."""
    parts = _Key(key)
    has_room = parts.counter.part(0, 1) < Term(constant(_FULL, "uint64")) - Term(count)
    split = _joined(parts.hash, parts.extended(), _words(0, 0), parts.next_place())
    renewed = _joined(_hash(parts.hash, _words(*[_FULL] * 4)), _words(0, 0, 0, 0, _FIRST, 0))
    return has_room.where(Term(key), parts.is_spent.where(renewed, split))


@composed("random.threefry_generate", results=lambda attrs, _: 1 if attrs["dtype"] else 2)
def threefry_generate(key: Tensor, *, out_shape: Sequence[Size], dtype: str = "") -> tuple[Tensor, ...]:
    """The key behind the numbers, and uint64 numbers. With a `dtype` it is the operator of the dialect, which only has numbers."""
    if dtype:
        return (emit("random.threefry_generate", key, out_shape=tuple(out_shape), dtype=dtype),)
    count = product(out_shape)
    drawn, blocks = (cast(size_tensor(n), "uint64") for n in (count, (count + 3) // 4 * 4))
    state = _with_room(key, drawn)
    numbers = emit("random.threefry_generate", state.part(0, 0, 8).tensor, out_shape=tuple(out_shape), dtype="uint64")
    counter = _joined(_words(0), state.part(0, 7) + Term(blocks))
    return _joined(state.part(0, 0, 6), counter, state.part(0, 8, 10)).tensor, numbers


@composed("random.threefry_split", results=2)
def threefry_split(key: Tensor) -> tuple[Tensor, ...]:
    """Two keys that draw different numbers."""
    parts = _Key(key)
    renewed = _hash(parts.hash, _joined(parts.path, parts.counter))
    halves = []
    for path, first in ((parts.path, 0), (parts.extended(), _FIRST)):
        split = _joined(parts.hash, path, parts.counter, parts.next_place())
        halves.append(parts.is_spent.where(_joined(renewed, _words(first, 0, 0, 0, _SECOND, 0)), split).tensor)
    return tuple(halves)


def _fractions(key: Tensor, shape: Sequence[Size], dtype: str) -> tuple[Tensor, Term]:
    """The key behind the numbers, and numbers from 0 to 1, without 1: the highest bits drawn are the fraction of a number from 1 to 2."""
    check(dtype in _FLOATS, "out_dtype", " or ".join(_FLOATS), dtype)
    word, used, one = _FLOATS[dtype]
    after, drawn = threefry_generate(key, out_shape=shape)
    number = _with_bits(_shifted_right(Term(cast(drawn, word)), used), Term(constant(one, word)))
    return after, Term(emit("reinterpret", number.tensor, dtype=dtype)) - 1.0


def _scalars(dtype: str, **operands: Tensor) -> list[Term]:
    for name, operand in operands.items():
        check(operand.type == TensorType((), dtype), name, TensorType((), dtype), operand.type)
    return [Term(operand) for operand in operands.values()]


@composed("random.uniform", results=2)
def uniform(key: Tensor, low: Tensor, high: Tensor, *, out_shape: Sequence[Size], out_dtype: str) -> tuple[Tensor, ...]:
    """The key behind the numbers, and numbers that are evenly distributed from low to high."""
    after, fractions = _fractions(key, out_shape, out_dtype)
    begin, end = _scalars(out_dtype, low=low, high=high)
    return after, (fractions * (end - begin) + begin).tensor


@composed("random.normal", results=2)
def normal(key: Tensor, mean: Tensor, scale: Tensor, *, out_shape: Sequence[Size], out_dtype: str) -> tuple[Tensor, ...]:
    """The key behind the numbers, and normally distributed numbers, by Box and Muller: of two drawn, one is the distance."""
    after, fractions = _fractions(key, (2, *out_shape), out_dtype)
    middle, deviation = _scalars(out_dtype, mean=mean, scale=scale)
    first, second = (Term(emit("squeeze", fractions.part(0, i).tensor, axis=(0,))) for i in (0, 1))
    distance = Term(emit("sqrt", (Term(emit("log", (1.0 - first).tensor)) * -2.0).tensor))
    return after, (distance * Term(emit("sin", (second * (2 * pi)).tensor)) * deviation + middle).tensor


@composed("random.multinomial", results=2)
def multinomial(key: Tensor, probs: Tensor, *, num_samples: int) -> tuple[Tensor, ...]:
    """The key behind the numbers, and positions drawn with the probabilities [..., positions]: int32 [..., num_samples].

    Negative probabilities count as 0; those of a row are divided by their sum.
    """
    check(probs.rank >= 1, "probs", "a shape [..., positions]", probs.type)
    last = probs.rank - 1
    weights = Term(cast(probs, "float32")).max(0)
    share = weights / Term(emit("sum", weights.tensor, axis=(last,), keepdims=True))
    ends = emit("expand_dims", emit("cumsum", share.tensor, axis=last), axis=last + 1)
    after, drawn = _fractions(key, (*probs.shape[:last], num_samples), "float32")
    beyond = Term(ends) - Term(emit("expand_dims", drawn.tensor, axis=last))
    nearest = (beyond > 0).where(beyond, 1)
    return after, cast(emit("argmin", nearest.tensor, axis=(last,)), "int32")
