"""The sizes of a call from outside, which the program of an entry checks: all that expressions have, and what a call may get wrong."""

from types import SimpleNamespace

import numpy as np
import pytest
import tvm_ffi

from relayc.dialects.mlir import ExecutionEngine, ir
from relayc.pipelines.llvm.entry_body import CONTEXT, EntryFunction, SizeChecks
from relayc.pipelines.llvm.packed import add_packed_entries, entry_addresses
from relayc.pipelines.llvm.size_check import MOST_VALUES, Do
from relayc.pipelines.llvm.tables import Strings
from relayc.pipelines.program.packed_entry import PackedEntry
from relayc.runtime import TensorSpec
from relayc.runtime.shapes import MAX_BYTES, find_sources
from relayc.symbolic import evaluate, maximum, minimum, parse

SHAPE = (
    parse("2*n*m + 3"),
    parse("n*n - m + 40"),
    parse("(5*n + 7) // (m + 1)"),
    minimum(parse("n"), parse("2*m"), 4),
    maximum(parse("n - m"), parse("m - n"), 1),
)


def compiled(entry):
    """f, which takes what an entry says and does nothing; and the module with it."""
    arguments = ", ".join(f"%{i}: {type_}" for i, type_ in enumerate(EntryFunction("f", entry, False).types))
    with ir.Context() as context, ir.Location.unknown():
        context.load_all_available_dialects()
        module = ir.Module.parse(f"llvm.func @f({arguments}) {{\n  llvm.return\n}}")
        add_packed_entries(module, {"f": entry})
        assert module.operation.verify()
        engine = ExecutionEngine(module, opt_level=2)
    (address,) = entry_addresses(engine, {"f": entry}).values()
    return tvm_ffi.Function.__from_extern_c__(address, keep_alive_object=engine), module


@pytest.fixture(scope="module")
def function():
    """f(x, n, m)."""
    return compiled(PackedEntry((TensorSpec("x", SHAPE, "float32"),), ("n", "m"), ranges={"m": (1, 9)}))[0]


def call(function, n, m, other=None):
    shape = [evaluate(d, {"n": n, "m": m}) for d in SHAPE]
    if other is not None:
        shape[other] += 1
    function(tvm_ffi.from_dlpack(np.zeros(shape, np.float32)), n, m)


@pytest.mark.parametrize(("n", "m"), [(0, 1), (1, 1), (3, 2), (2, 9), (7, 5)])
def test_every_dimension_is_what_its_expression_says(function, n, m):
    call(function, n, m)
    for axis, d in enumerate(SHAPE):
        wanted = evaluate(d, {"n": n, "m": m})
        with pytest.raises(ValueError, match=rf"f: dimension {axis} of x: expected .*, {wanted} for .*, found {wanted + 1}$"):
            call(function, n, m, axis)


def test_symbols_are_integers_within_their_bounds(function):
    for m, bound in ((0, "least 1"), (10, "most 9")):
        with pytest.raises(ValueError, match=f"f: m is {m}, expected at {bound}$"):
            call(function, 4, m)
    with pytest.raises(ValueError, match="with a value for n that is no integer"):
        function(tvm_ffi.from_dlpack(np.zeros((1,) * len(SHAPE), np.float32)), 1.0, 1)


def test_symbols_follow_from_dimensions_that_are_expressions_of_them():
    tensors = (TensorSpec("x", (parse("3*n + 2"), parse("2*m - n")), "float32"), TensorSpec("y", (parse("n*m"),), "float32"))
    function, module = compiled(PackedEntry(tensors, ("n", "m"), sources=find_sources(tensors, ("n", "m"))))
    assert "llvm.func internal @f(" in str(module)
    for n, m in ((0, 1), (1, 1), (4, 7)):
        x = tvm_ffi.from_dlpack(np.zeros((3 * n + 2, 2 * m - n), np.float32))
        function(x, tvm_ffi.from_dlpack(np.zeros(n * m, np.float32)))
        with pytest.raises(ValueError, match=rf"dimension 0 of y: expected m\*n, {n * m} for .*, found {n * m + 1}$"):
            function(x, tvm_ffi.from_dlpack(np.zeros(n * m + 1, np.float32)))


@pytest.mark.parametrize("inputs", [0, 1])
def test_memory_is_as_large_as_the_symbols_ask_for(inputs):
    """The arena is the first of the tensors of a function that takes no others."""
    memory = TensorSpec("arena", (parse("131072*n + 1"),), "uint8"), TensorSpec("params", (4,), "uint8")
    entry = PackedEntry((*[TensorSpec("x", (2,), "float32")] * inputs, *memory), ("n",), blobs=2)
    assert entry.arena == inputs
    function = compiled(entry)[0]
    x, params = np.zeros(2, np.float32), np.zeros(4, np.uint8)

    def run(size, n):
        function(*map(tvm_ffi.from_dlpack, (*[x] * inputs, np.zeros(size, np.uint8), params)), n)

    for n in (0, 1, 5):
        run((n << 17) + 1, n)
        run((n << 17) + 2, n)
        with pytest.raises(ValueError, match=r"arena.* that is too small for this call$"):
            run(n << 17, n)
    most = MAX_BYTES // (1 << 17) - 1
    with pytest.raises(ValueError, match=r"that is too small for this call$"):
        run(4, most)
    with pytest.raises(ValueError, match=f"f: expected to need at most {MAX_BYTES} bytes, found more$"):
        run(4, most + 1)


def test_entries_that_cannot_be_linked_are_an_error():
    with pytest.raises(RuntimeError, match="the compiled module could not be linked"):
        entry_addresses(SimpleNamespace(raw_lookup=lambda name: 0), {"f": PackedEntry(())})


def test_programs_take_the_places_that_they_ask_for():
    deep = parse("n")
    for i in range(20):
        deep = parse("m + 1") // (deep + i)
    for shape in ((deep,), (*SHAPE, deep)):
        entry = PackedEntry((TensorSpec("x", shape, "float32"),), ("n", "m"))
        room, *words = SizeChecks(EntryFunction("f", entry, False), Strings(), [0]).words
        assert room == 2 + max(most_numbers(words), MOST_VALUES)
    assert room > 2 + MOST_VALUES


def most_numbers(words):
    """The most numbers that a program has on its stack."""
    pushes = {Do.SET: -1, Do.EQUAL: -2, Do.AT_LEAST: -2, **dict.fromkeys((Do.END, Do.RAISE, Do.RAISE_TENSOR), 0)}
    pushes |= dict.fromkeys((Do.MULTIPLY, Do.ADD, Do.FLOOR, Do.MIN, Do.MAX), -1)
    heights, place = [0], 0
    while place < len(words):
        what, operand = Do(words[place]), words[place + 1]
        heights.append(heights[-1] + pushes.get(what, 1))
        place += 2
        if what in (Do.EQUAL, Do.AT_LEAST):
            heights += [heights[-1] + most_numbers(words[place : place + operand]), heights[-1]]
            place += operand
    return max(heights)


def test_an_entry_needs_its_function():
    with ir.Context() as context, ir.Location.unknown():
        context.load_all_available_dialects()
        module = ir.Module.parse("llvm.func @f() {\n  llvm.return\n}")
        with pytest.raises(ValueError, match="expected functions g, h in the module, found none of these names"):
            add_packed_entries(module, {"f": PackedEntry(()), "g": PackedEntry(()), "h": PackedEntry(())})


def test_one_entry_of_several_may_have_a_context():
    entries = {"f": PackedEntry(()), "g": PackedEntry((), context=True)}
    texts = []
    for name, entry in entries.items():
        arguments = ", ".join(f"%{i}: {type_}" for i, type_ in enumerate(EntryFunction(name, entry, False).types))
        texts.append(f"llvm.func @{name}({arguments}) {{\n  llvm.return\n}}")
    with ir.Context() as context, ir.Location.unknown():
        context.load_all_available_dialects()
        module = ir.Module.parse("\n".join(texts))
        add_packed_entries(module, entries)
        assert module.operation.verify() and str(module).count(f"@{CONTEXT}") == 2
