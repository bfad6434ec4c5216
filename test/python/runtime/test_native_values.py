"""Values of Python as values of programs and back, on a heap of lists: of each type, and what no value of a type is."""

from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from relayc.runtime.heap import CLOSURE, REFERENCE, TUPLE, constructors
from relayc.runtime.native import (
    APPLY,
    HeapClosure,
    HeapValue,
    NativeCode,
    Values,
    _flat,
    _SharedRef,
    _structured,
    on_tensors,
    spec_of,
    specs_of_result,
    word_of,
)
from relayc.runtime.native_info import Constructor, DataType, ValueType
from relayc.runtime.tensor import as_array, to_tensor
from relayc.runtime.values import ConstructorValue, RefValue
from relayc.symbolic import symbol

I32, F32 = ValueType("tensor", "int32"), ValueType("tensor", "float32")
ROWS = ValueType("tensor", "float32", (None, 3))
PAIR = ValueType("tuple", parts=(I32, F32))
LIST = ValueType("data", "List", parts=(I32,))
ELEMENT = ValueType("var", "t")
CONS, NIL = Constructor("Cons", 0, (ELEMENT, ValueType("data", "List", parts=(ELEMENT,)))), Constructor("Nil", 1, ())
DATA = {"List": DataType("List", ("t",), (CONS, NIL))}
REF = ValueType("ref", parts=(I32,))
FUNCTION = ValueType("function", parts=(I32, F32, I32))


class Lists:
    """A heap whose cells are lists [number of the constructor, tag, fields...]."""

    def make(self, number, tag, *fields):
        return [number, tag, *fields]


@pytest.fixture
def values():
    found = Values(Lists(), DATA, {"List": [CONS, NIL]})
    found.foreign = {1: 111, 2: 222}
    return found


def test_values_of_each_type(values):
    assert values.taken((1, 2.5), PAIR) == values.taken([1, 2.5], PAIR) == [0, TUPLE, 1, 2.5]
    cons, nil = constructors.number(CONS), constructors.number(NIL)
    assert values.taken(CONS(1, CONS(2, NIL())), LIST) == [cons, 0, 1, [cons, 0, 2, [nil, 1]]]
    nested = ValueType("tuple", parts=(PAIR, ValueType("tuple"), LIST))
    assert values.taken(((1, 2.0), (), NIL()), nested) == [0, TUPLE, [0, TUPLE, 1, 2.0], [0, TUPLE], [nil, 1]]
    assert values.taken(ConstructorValue(1, ()), LIST) == [nil, 1]  # of a constructor that is known by its tag
    number, tag, function = values.taken(lambda i, x: 3, FUNCTION)
    assert (number, tag) == (222, CLOSURE) and function(1, 2.0) == 3


def test_a_reference_is_one_cell(values):
    reference = RefValue(5)
    cell = values.taken(reference, REF)
    assert cell == [0, REFERENCE, 5] and values.taken(reference, REF) is cell and reference.shared.cell is cell
    pair = values.taken((RefValue(1), RefValue(1)), ValueType("tuple", parts=(REF, REF)))
    assert pair[2] == pair[3] and pair[2] is not pair[3]
    with pytest.raises(TypeError, match=r"expected ref\(float32\), found a reference of type ref\(int32\)"):
        values.taken(reference, ValueType("ref", parts=(F32,)))
    own = RefValue(None)
    own._value = (own,)
    with pytest.raises(ValueError, match="found a reference to a value that has the reference itself"):
        values.taken(own, ValueType("ref", parts=(ValueType("tuple", parts=(ValueType("ref", parts=(ValueType("unknown"),)),)),)))


def test_numbers_are_words_where_they_fit(values):
    for value, type_, word in (
        (7, I32, 7),
        (-(2**31), I32, -(2**31)),
        (2**31 - 1, I32, 2**31 - 1),
        (1.5, F32, 1.5),
        (True, ValueType("tensor", "bool"), True),
        (True, I32, 1),
        (True, F32, 1.0),
        (np.int32(4), I32, 4),
        (3, F32, 3.0),
    ):
        found = values.taken(value, type_)
        assert (found, type(found)) == (word, type(word))
    for value, dtype, error in (
        (2**31, "int32", ValueError),
        (-(2**31) - 1, "int32", ValueError),
        (256, "uint8", ValueError),
        (-1, "uint8", ValueError),
        (2.5, "int32", TypeError),
        (2.0, "int64", TypeError),
        (1, "bool", TypeError),
        (1.0, "bool", TypeError),
    ):
        with pytest.raises(error, match=f"expected {dtype}, found {value}$"):
            values.taken(value, ValueType("tensor", dtype))
    # Of an element type without a word, and of a rank: tensors.
    assert as_array(values.taken(5, ValueType("tensor", "int64"))).tolist() == 5
    assert as_array(values.taken(np.zeros((4, 3), "float32"), ROWS)).shape == (4, 3)
    for dtype, is_word in (("int32", True), ("float32", True), ("bool", True), ("int64", False), ("float64", False), ("int8", False)):
        assert isinstance(word_of(np.zeros((), dtype)), (int, float)) is is_word
    assert not isinstance(word_of(np.zeros(1, "int32")), int)


def test_what_is_no_value_of_a_type(values):
    for value, type_, error, message in (
        (np.zeros(3, "float32"), ROWS, ValueError, r"expected Tensor\[\(\?, 3\), float32\], found float32\[3\]"),
        (np.zeros((4, 2), "float32"), ROWS, ValueError, r"found float32\[4, 2\]"),
        (np.zeros((4, 3), "float64"), ROWS, TypeError, r"found float64\[4, 3\]"),
        (5, ROWS, ValueError, "found float32"),
        (np.zeros(1, "int32"), I32, ValueError, r"expected int32, found int32\[1\]"),
        ((1,), PAIR, TypeError, r"expected \(int32, float32\), found 1 field\(s\) where it has 2"),
        ((1, 2.0, 3), PAIR, TypeError, "found 3 field"),
        (5, PAIR, TypeError, "expected .*, found a value of type int"),
        ((1, 2), LIST, TypeError, "found a value of type tuple"),
        (NIL(), PAIR, TypeError, "found a value of type ConstructorValue"),
        (RefValue(1), LIST, TypeError, "found a value of type RefValue"),
        ((1, 2), REF, TypeError, "found a value of type tuple"),
        (5, FUNCTION, TypeError, "found a value of type int"),
        (len, PAIR, TypeError, "found a value of type builtin_function_or_method"),
        (ConstructorValue(2, ()), LIST, TypeError, r"expected List\[int32\] \(Cons, Nil\), found a value of the constructor 2"),
        (ConstructorValue(-1, ()), LIST, TypeError, "found a value of the constructor -1"),
        (ConstructorValue(0, (), NIL), LIST, TypeError, "found a value of the constructor Nil"),
        (ConstructorValue(0, (1,)), LIST, TypeError, r"found 1 field\(s\) where it has 2"),
        (HeapClosure(values, [], PAIR), FUNCTION, TypeError, r"expected fn .*, found a function of type \(int32, float32\)"),
    ):
        with pytest.raises(error, match=message):
            values.taken(value, type_)
    assert values.taken(HeapClosure(values, [9], FUNCTION), FUNCTION) == [9]


def test_types_of_fields(values):
    fields = values.field_types(LIST, 0)
    assert list(fields) == [I32, LIST] and values.field_types(LIST, 0) is fields
    assert list(values.field_types(ValueType("data", "List", parts=(F32,)), 0)) == [F32, ValueType("data", "List", parts=(F32,))]
    assert list(values.field_types(LIST, 1)) == [] and values.field_types(None, 0) == values.field_types(PAIR, 0) == ()


def test_values_of_programs_go_in_as_they_are_where_the_types_are_those(values):
    """A value of the heap is copied where its type, or what the name of the type means, is another one."""
    heap, number = values.heap, constructors.number(NIL)
    heap.info, heap.count = lambda cell: cell[0], lambda cell: len(cell) - 2
    cell = [number, 1]
    own = HeapValue(values, cell, 1, LIST)
    assert values.taken(own, LIST) is cell and len(own) == 0
    others = Values(heap, dict(DATA), {"List": [CONS, NIL]})
    assert others.taken(own, LIST) is cell
    changed = Values(heap, {"List": DataType("List", ("u",), (CONS, NIL))}, {"List": [CONS, NIL]})
    assert changed.taken(own, LIST) == cell and changed.taken(own, LIST) is not cell
    assert values.taken(own, ValueType("data", "List", parts=(F32,))) is not cell


def test_specs_of_functions():
    spec = spec_of("x", ROWS)
    assert (spec.name, spec.shape, spec.dtype) == ("x", (symbol("x_0"), 3), "float32")
    assert (spec_of("l", LIST).shape, spec_of("l", LIST).dtype) == ((), "value(List[int32])")
    assert [(s.name, s.dtype) for s in specs_of_result(PAIR)] == [("output_0", "int32"), ("output_1", "float32")]
    assert [s.name for s in specs_of_result(I32)] == ["output"]


def test_tuples_of_kernels_are_flat():
    assert _flat((1, [2, [3, []]], 4)) == [1, 2, 3, 4]
    nested = ValueType("tuple", parts=(I32, ValueType("tuple", parts=(I32, I32)), I32))
    assert _structured(nested, [1, 2, 3, 4]) == [1, [2, 3], 4] and _structured(I32, [1]) == 1


def test_functions_of_kernels_take_and_give_tuples():
    called = on_tensors(lambda *args: tuple(sum(args) * n for n in (1, 2)), (PAIR, I32, PAIR))
    assert called([1, [2, 3]], 4) == [10, 20]
    assert on_tensors(lambda a: a + 1, (I32, I32))(5) == 6


def test_what_has_no_known_type_is_not_written_or_called(values):
    values.heap.set, values.heap.field = (lambda cell, value: cell.append(value)), (lambda cell, i: cell[2 + i])
    for type_ in (None, PAIR):
        unknown = _SharedRef(values, [0, REFERENCE, 5], type_)
        with pytest.raises(TypeError, match="expected a reference whose type is known, found one of an unknown type"):
            unknown.write(3)
        with pytest.raises(TypeError, match="expected a function whose type is known, found one of an unknown type"):
            NativeCode._apply(None, HeapClosure(values, [9], type_), [])
    assert repr(HeapClosure(values, [9], FUNCTION)) == "<function of type fn (int32, float32) -> int32>"
    assert repr(RefValue(CONS(1, NIL()))) == "ref" and repr(CONS(1, CONS(2, NIL()))) == "Cons(1, ...)" and len(CONS(1, NIL())) == 2


def test_arrays_of_programs_are_arrays_of_numpy(values):
    values._array = lambda value, dtype=None: (np.asarray(value), dtype)
    narrow = np.array([1, 2.5], ml_dtypes.bfloat16)
    found, _ = values.given(to_tensor(narrow), ROWS)
    assert found.dtype == narrow.dtype
    np.testing.assert_array_equal(found, narrow)
    assert values.given(3, I32)[1] == "int32" and values.given(True, I32)[1] == "bool" and values.given(2.5, F32)[1] == "float32"


def test_functions_of_programs_may_call_deep():
    type_ = ValueType("function", parts=(I32, I32))
    code = SimpleNamespace(
        _packed={f"{APPLY}1": "packed"}, values=SimpleNamespace(taken=lambda value, type_: value, given=lambda value, type_: value)
    )
    code.run = lambda packed, taken, is_deep: (packed, taken, is_deep)
    assert NativeCode._apply(code, HeapClosure(None, "cell", type_), [5]) == ("packed", ["cell", 5], True)
    for closure, given, message in (
        (HeapClosure(None, "cell", None), [5], "expected a function whose type is known, found one of an unknown type"),
        (HeapClosure(None, "cell", I32), [5], "expected a function whose type is known, found one of an unknown type"),
        (HeapClosure(None, "cell", type_), [5, 6], r"expected 1 argument\(s\), found 2"),
        (HeapClosure(None, "cell", FUNCTION), [5, 6], r"expected 2 argument\(s\), found 2"),  # no function of the program has two
    ):
        with pytest.raises(TypeError, match=message):
            NativeCode._apply(code, closure, given)
