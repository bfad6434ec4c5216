"""Operators at symbolic sizes: a program compiled once gives at any sizes what the program of these sizes gives."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from oracle import values
from support import Const, program, target_of_tests

from relayc.dialects.functions import signature_of, symbols_of
from relayc.dialects.mlir import func, ir, make_context
from relayc.dialects.relay import IRModule, RelayError, TensorType, build
from relayc.dialects.relay.names import ir_name
from relayc.dialects.relay.registration import OPS
from relayc.dialects.relay.types import numpy_dtype
from relayc.pipelines.context.instruments import Verifier
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.driver.compile import compile
from relayc.pipelines.evaluate.errors import Outside
from relayc.pipelines.evaluate.relay import RelayInterpreter
from relayc.pipelines.te.signature import flat_tensors, te_array
from relayc.symbolic import FAR, Dim, Range, Size, evaluate, parse, symbol

Body = Callable[..., Sequence[ir.Value]]
"""What builds operators from values and gives the results."""


def symbolic_program(body: Body, operands: Sequence[TensorType | Const], ranges: Mapping[str, Range] | None = None) -> IRModule:
    """A module whose main applies `body` to an input of each type (and to constants). Raises RelayError where a type relation does."""
    inputs = [t for t in operands if not isinstance(t, Const)]
    with make_context(), ir.Location.name("test"):
        mod = IRModule(ir.Module.create())
        mod.set_ranges(ranges or {})
        with mod.ranges:
            with ir.InsertionPoint(mod.module.body):
                main = func.FuncOp("main", ([t.to_mlir() for t in inputs], []))
            block = main.add_entry_block()
            with ir.InsertionPoint(block):
                arguments = iter(block.arguments)
                results = list(body(*[mod.constant(t.array) if isinstance(t, Const) else next(arguments) for t in operands]))
                func.ReturnOp(results)
            signature = ir.FunctionType.get([a.type for a in block.arguments], [r.type for r in results])
            main.attributes["function_type"] = ir.TypeAttr.get(signature)
            mod.verify()
    return mod


def tensor(text: str) -> TensorType:
    """The type that a text says: `float32[n, 3, 2*n + 1]`."""
    found = re.fullmatch(r"(\w+)\[(.*)\]", text)
    assert found is not None, text
    return TensorType(tuple(parse(d) for d in re.split(r",\s*(?![^()]*\))", found[2]) if d), found[1])


def at(value: Any, sizes: Mapping[str, int]) -> Any:
    """A size, a type, or a sequence of such where the symbols have values; anything else as it is."""
    if isinstance(value, Dim):
        return evaluate(value, sizes)
    if isinstance(value, TensorType):
        return value.with_shape(at(value.shape, sizes))
    return tuple(at(v, sizes) for v in value) if isinstance(value, tuple | list) else value


@dataclass(frozen=True)
class Case:
    """An operator on types of symbolic sizes.

    Attributes:
      operands: types as text, and constants.
      attrs: attributes, in which texts are sizes where the attribute is one of sizes.
      lows, highs: bounds of symbols, 0 and none where nothing is said.
      free: symbols that only attributes have: an operand more gives them, of these sizes, which is not used.
      positive: operands that must have no negative element.
    """

    operands: Sequence[str | Const]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    lows: Mapping[str, int] = field(default_factory=dict)
    free: str = ""
    highs: Mapping[str, int] = field(default_factory=dict)
    positive: tuple[int, ...] = ()

    @property
    def types(self) -> list[TensorType | Const]:
        """Types of the operands, and of the one that is not used where there are free symbols."""
        found: list[TensorType | Const] = [o if isinstance(o, Const) else tensor(o) for o in self.operands]
        return [*found, tensor(f"int8[{', '.join(self.free.split())}]")] if self.free else found

    @property
    def ranges(self) -> dict[str, Range]:
        names = {name for t in self.types if isinstance(t, TensorType) for name in t.symbols}
        return {name: Range(self.lows.get(name, 0), self.highs.get(name, FAR)) for name in sorted(names)}

    def samples(self, seed: int) -> list[dict[str, int]]:
        """Sizes to run at: all smallest, all 1, and some of primes and multiples of vectors. Each costs the compilation of a program."""
        rng = np.random.default_rng(seed)
        ranges = self.ranges
        drawn = {name: int(rng.choice((2, 3, 7, 13, 16, 17, 31, 33, 48))) for name in ranges}
        given = [dict.fromkeys(ranges, 0), dict.fromkeys(ranges, 1), drawn]
        within = [{name: min(max(n, ranges[name].low), ranges[name].high) for name, n in sizes.items()} for sizes in given]
        return list({tuple(sizes.items()): sizes for sizes in within}.values())

    def arrays(self, sizes: Mapping[str, int]) -> list[np.ndarray | Const]:
        found: list[np.ndarray | Const] = []
        for i, type_ in enumerate(self.types):
            array = type_ if isinstance(type_, Const) else _values(at(type_, sizes), i)
            found.append(np.abs(array) if i in self.positive and not isinstance(array, Const) else array)
        return found


def cases_of(table: Mapping[str, Sequence[Case]]) -> list[Any]:
    """(names, case) of every case in a table by operators, as parameters of a test."""
    return [pytest.param(names, case, id=f"{names.split()[0]}-{i}") for names, cases in table.items() for i, case in enumerate(cases)]


def agrees(operators: Sequence[str], case: Case) -> None:
    """Compiles `case` of each operator in one program, and asserts that it gives at several sizes what static programs give."""
    attrs = {key: _parsed(operators[0], key, value) for key, value in case.attrs.items()}

    def body(attrs: Mapping[str, Any]) -> Body:
        def built(*values: ir.Value) -> Sequence[ir.Value]:
            found: list[ir.Value] = []
            for operator in operators:
                result = build(operator, *values[: len(case.operands)], **attrs)
                found += result if isinstance(result, tuple) else [result]
            return found

        return built

    with PassContext(instruments=[Verifier()]):
        module = compile(symbolic_program(body(attrs), case.types, case.ranges), **target_of_tests())
    for sizes in case.samples(seed=len(operators[0])):
        arrays = case.arrays(sizes)
        expected = meaning(body({key: at(value, sizes) for key, value in attrs.items()}), arrays)
        assert_same(_outputs(module, [a for a in arrays if not isinstance(a, Const)]), expected, f"{operators} at {sizes}")


def meaning(body: Body, arrays: Sequence[np.ndarray | Const]) -> list[np.ndarray]:
    """The results of `program(body, arrays)` by the compute rules of its operators, without the compiler."""
    mod = program(body, arrays)
    found = RelayInterpreter(mod)("main", [te_array(a) for a in arrays if not isinstance(a, Const)])
    results = flat_tensors(signature_of(symbols_of(mod.module)["main"]).results)
    return [np.asarray(a).view(numpy_dtype(t.dtype)) for a, t in zip(found, results, strict=True)]


def assert_same(found: Sequence[np.ndarray], expected: Sequence[np.ndarray], what: str) -> None:
    """Asserts that results are equal; floats up to the rounding of sums in another order, which is below 1e-4 for the sizes at hand."""
    assert len(found) == len(expected), what
    for a, b in zip(found, expected, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), what
        tolerance = {"float32": 1e-4, "float64": 1e-9}.get(b.dtype.name, 1e-2 if b.dtype.kind not in "iub" else 0)
        np.testing.assert_allclose(a.astype("float64"), b.astype("float64"), tolerance, tolerance, err_msg=what)


def _parsed(operator: str, key: str, value: Any) -> Any:
    """An attribute of which the texts of sizes are sizes."""
    spec = OPS[ir_name(operator)].attr_specs[key]
    n = symbol("n")
    if not (spec.kind.check(n) or spec.kind.check((n,))):
        return value
    return tuple(_size(v) for v in value) if isinstance(value, tuple | list) else _size(value)


def _size(value: Any) -> Any:
    return parse(value) if isinstance(value, str) else value


def _values(type_: TensorType, seed: int) -> np.ndarray:
    if type_.dtype == "bool":
        return values(type_.static_shape, "int8", seed) > 0
    return values(type_.static_shape, type_.dtype, seed)


def agrees_with_symbols(body: Body, arrays: Sequence[Any], outputs: Sequence[np.ndarray]) -> tuple[int, int, bool]:
    """Asserts that a program gives `outputs` of `arrays` where a random part of its sizes is symbolic, and at other sizes what is right.

    Equal sizes are one symbol. Where attributes do not let sizes be symbols, as few of them as that needs stay numbers; other sizes that
    the program of numbers does not take are an error of the symbolic one.

    Returns: how many sizes were chosen to be symbols, and were symbols, and whether results were compared at other sizes.
    """
    inputs = [a for a in arrays if not isinstance(a, Const)]
    numbers = sorted({n for a in inputs for n in a.shape if n > 1})
    rng = np.random.default_rng([len(inputs), *numbers])
    chosen = [n for n in numbers if rng.random() < 0.7]
    wanted = len(chosen)
    while chosen:
        symbols: dict[int, Size] = {n: symbol(f"n{n}") for n in chosen}
        types = [a if isinstance(a, Const) else TensorType(tuple(symbols.get(n, n) for n in a.shape), a.dtype.name) for a in arrays]
        try:
            mod = symbolic_program(body, types)
            break
        except RelayError:
            chosen.pop(int(rng.integers(len(chosen))))
    if not chosen:
        return wanted, 0, False
    with PassContext(instruments=[Verifier()]):
        module = compile(mod, **target_of_tests())
    assert_same(_outputs(module, inputs), outputs, f"symbols for {chosen}")
    others = {n: int(rng.choice((0, 1, 2, 3, 7, 17))) for n in chosen}
    resized = [a if isinstance(a, Const) else np.resize(a, [others.get(n, n) for n in a.shape]) for a in arrays]
    try:
        expected = meaning(body, resized)
    except RelayError:
        with pytest.raises(ValueError):
            _outputs(module, [a for a in resized if not isinstance(a, Const)])
        return wanted, len(chosen), False
    except Outside:  # constant indices that are out of range now: nobody checks them
        return wanted, len(chosen), False
    except ValueError:  # indices that are out of range now
        with pytest.raises(ValueError, match=r"index .* into"):
            _outputs(module, [a for a in resized if not isinstance(a, Const)])
        return wanted, len(chosen), False
    assert_same(_outputs(module, [a for a in resized if not isinstance(a, Const)]), expected, f"sizes {others}")
    return wanted, len(chosen), True


def _outputs(module: Any, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    found = module["main"](*[np.array(a, copy=True) for a in inputs])
    return list(found) if isinstance(found, list | tuple) else [found]
