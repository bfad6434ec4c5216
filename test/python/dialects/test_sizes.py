"""Sizes that operators compute, against what they are of numbers; errors of what is not made with `build`."""

import itertools
from typing import Any

import pytest

from relayc.dialects.mlir import ir, make_context
from relayc.dialects.relay import IRModule, RelayError, TensorType
from relayc.dialects.relay.attributes import attr_spec
from relayc.dialects.relay.image import _rounded
from relayc.dialects.relay.reshape import reshaped
from relayc.dialects.relay.window import windows
from relayc.symbolic import Range, Ranges, evaluate, symbol

N = symbol("n")


def counted(size: int, kernel: int, stride: int, dilation: int, pads: tuple[int, int], ceil_mode: bool) -> int:
    """Windows that fit into padded data; in ceil_mode one more that hangs over, and none that begins in the padding behind."""
    last = size + sum(pads) - (dilation * (kernel - 1) + 1)
    count = len(range(0, last + 1, stride)) + (ceil_mode and last % stride != 0)
    return count - (ceil_mode and (count - 1) * stride >= size + pads[0])


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize(("kernel", "dilation"), [(1, 1), (2, 1), (3, 1), (2, 3)])
def test_numbers_of_windows(kernel: int, dilation: int, ceil_mode: bool) -> None:
    span = dilation * (kernel - 1) + 1
    for stride, before, after in itertools.product((1, 2, 3), (0, 1, 2), (0, 1, 2, 3)):
        pads, least = (before, after), max(span - before - after, 1)
        with Ranges({"n": Range(least, 12)}):
            symbolic = windows(N, kernel, stride, dilation, pads, ceil_mode, "0")
        assert symbolic is not None
        for size in range(least, 13):
            expected = counted(size, kernel, stride, dilation, pads, ceil_mode)
            if expected < 1:
                continue
            given = (size, kernel, stride, dilation, pads, ceil_mode)
            assert windows(*given, "0") == expected, given
            assert evaluate(symbolic, {"n": size}) == expected, given


def test_a_window_that_does_not_fit() -> None:
    with pytest.raises(RelayError, match=r"window along axis 2: expected at most 4 elements \(data 3 with padding \(0, 1\)\), found 5"):
        windows(3, 3, 1, 2, (0, 1), False, "2")
    assert windows(None, 3, 1, 1, (0, 0), False, "2") is windows(3, None, 1, 1, (0, 0), False, "2") is None


@pytest.mark.parametrize("scale", [0.5, 1.0, 1.5, 0.75, 2.25, 1 / 3, 2.0**-16])
def test_scaled_lengths_are_rounded_to_even(scale: float) -> None:
    with Ranges({"n": Range(0, 40)}):
        if scale == 1 / 3:
            with pytest.raises(
                RelayError, match=r"scale: expected a fraction of a denominator of at most 65536 for a length of n, found 0\.33"
            ):
                _rounded(N, scale)
            return
        found = _rounded(N, scale)
    assert [evaluate(found, {"n": n}) for n in range(41)] == [round(n * scale) for n in range(41)]


def test_a_scale_of_more_digits_than_fit() -> None:
    with pytest.raises(RelayError, match="denominator of at most 65536"):
        _rounded(N, 2.0**-17)


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ((-5,), r"newshape\[0\]: expected a size or one of 0, -1, -2, -3, -4, found -5"),
        ((2, 3, 0), r"newshape\[2\]: expected a dimension 2 of the operand to copy"),
        ((-1, -1), "newshape: expected at most one -1"),
        ((0, -3), r"newshape\[1\]: expected dimensions 1 and 2 of the operand to merge"),
        ((-2, -4, 1, 2), r"newshape\[1\]: expected a dimension 2 of the operand to split"),
        ((-4, 3, 2, 0), "newshape: expected factors of 2 after -4"),
    ],
)
def test_codes_that_fit_no_shape(codes: tuple[int, ...], message: str) -> None:
    with pytest.raises(RelayError, match=message):
        reshaped((2, 3), codes, False)


@pytest.mark.parametrize(
    ("shape", "codes", "expected"),
    [
        ((2, 3), (-4, 1, 2, 0), (1, 2, 3)),
        ((6, 3), (-4, -1, 2, -2), (3, 2, 3)),
        ((6, 3), (-4, 2, -1, -2), (2, 3, 3)),
        ((2, 3, 4), (0, -3), (2, 12)),
        ((2, 3, 4), (-3, -2), (6, 4)),
        ((2, 3, 4), (-1, 4), (6, 4)),
        ((2 * N, 3), (-4, 2, N, 0), (2, N, 3)),
        ((), (1, 1), (1, 1)),
        ((), (), ()),
    ],
)
def test_codes_of_shapes(shape: tuple, codes: tuple, expected: tuple) -> None:
    assert reshaped(shape, codes, False) == expected


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("[]", "expected a dictionary of symbols, found"),
        ("{n = 3}", "n: expected least, largest and typical value as array<i64: ...>, found 3"),
        ("{n = array<i64: 1, 2>}", "n: expected least, largest and typical value"),
        ("{n = array<i64: 3, 2, 2>}", "n: expected least, largest and typical value"),
        ("{n = array<i32: 1, 2, 2>}", "n: expected least, largest and typical value"),
    ],
)
def test_ranges_that_are_none(attribute: str, message: str) -> None:
    with pytest.raises(RelayError, match=f"relay.symbols: {message}"):
        IRModule.parse(f"module attributes {{relay.symbols = {attribute}}} {{}}").ranges  # noqa: B018


def test_ranges_of_one_size() -> None:
    assert dict(IRModule.parse("module attributes {relay.symbols = {n = array<i64: 3, 3, 3>}} {}").ranges) == {"n": Range(3, 3, 3)}


def test_a_module_without_main() -> None:
    with pytest.raises(RelayError, match="the module has no function main"):
        IRModule.parse("func.func private @other()").main  # noqa: B018


def test_sizes_of_types() -> None:
    with pytest.raises(ValueError, match="has an unknown dimension"):
        TensorType((2, None), "float32").sizes  # noqa: B018
    with pytest.raises(ValueError, match="has a dimension that is no number"):
        TensorType((2, N), "float32").static_shape  # noqa: B018
    assert TensorType((2, N), "float32").sizes == (2, N)
    with make_context(), ir.Location.unknown():
        for shape, text in [
            ((2, None), "tensor<2x?xf32>"),
            ((N, 3), 'tensor<?x3xf32, ["n"]>'),
            ((None, N + 1, None), 'tensor<?x?x?xf32, ["?", "n + 1", "?"]>'),
        ]:
            type_ = TensorType(shape, "float32")
            assert str(type_) == str(type_.to_mlir()) == text
            assert TensorType.from_mlir(type_.to_mlir()) == type_
    with make_context(), pytest.raises(TypeError, match="expected a size such as"):
        TensorType.from_mlir(ir.Type.parse('tensor<?xf32, ["n/2"]>'))


@pytest.mark.parametrize(("value", "fits"), [((1 << 63) - 1, True), (1 << 63, False), (-(1 << 63), True), (-(1 << 63) - 1, False)])
def test_integers_have_64_bits(value: int, fits: bool) -> None:
    spec = attr_spec("axis", int, 0, "axis")
    with make_context():
        if fits:
            assert ir.IntegerAttr(spec.encode(value)).value == value
        else:
            with pytest.raises(RelayError, match=f"attribute axis: expected an integer of 64 bits, found {value}"):
                spec.encode(value)


@pytest.mark.parametrize("annotation", [dict, dict | None])
def test_annotations_that_are_no_kind_of_attribute(annotation: Any) -> None:
    with pytest.raises(TypeError, match=r"field way: .* is not a kind of attribute"):
        attr_spec("way", annotation, None, "way")
