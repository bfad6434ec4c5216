"""Kernels of the default strategy and of the fallback with symbolic sizes: any subset of dimensions, several sizes for each compiled
kernel, against numpy."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import values
from symbolic_kernels import SymbolicKernel, with_sizes

import relayc
from relayc.pipelines.context.target import Target
from relayc.symbolic import is_symbolic, parse, substitute

TARGETS = {
    "native": Target("cpu", num_threads=2),
    "avx512": Target("cpu", mcpu="x86-64-v4", emulate=True, num_threads=2),
    "avx2": Target("cpu", mcpu="x86-64-v3", emulate=True, num_threads=2),
    "sse": Target("cpu", mcpu="x86-64-v2", emulate=True, num_threads=2),
}
# Around the widths of vectors, of several side by side, and of tiles that are turned.
SIZES = [0, 1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 31, 32, 33, 37, 63, 64, 65, 97, 130]


@dataclass(frozen=True)
class Case:
    """A kernel.

    Attributes:
      inputs: types by name.
      code: operations that make %out.
      output: its type.
      expected: of the inputs; None where there is nothing to compare with.
      limits: largest sizes of symbols.
      strategy: that takes it.
    """

    inputs: dict[str, str]
    code: str
    output: str
    expected: Callable[..., np.ndarray | None]
    limits: Mapping[str, int] | None = None
    strategy: str = "loops"

    @property
    def symbols(self) -> list[str]:
        return sorted(set(re.findall(r'"(\w+)"', " ".join(self.inputs.values()))))

    def text(self) -> str:
        arguments = ", ".join(f"%{name}: {type_}" for name, type_ in self.inputs.items())
        return f"func.func @main({arguments}) -> {self.output} {{\n{self.code}\nreturn %out : {self.output}\n}}"


def tensor(*shape: str | int, dtype: str = "f32") -> str:
    dims = "".join("?x" if isinstance(d, str) else f"{d}x" for d in shape)
    names = ", ".join(f'"{d}"' for d in shape if isinstance(d, str))
    return f"tensor<{dims}{dtype}, [{names}]>" if names else f"tensor<{dims}{dtype}>"


def case(
    name: str,
    inputs: dict[str, str],
    output: str,
    expected: Callable[..., np.ndarray | None],
    attributes: str = "",
    limits: Mapping[str, int] | None = None,
    strategy: str = "loops",
) -> Case:
    """A kernel of one operator."""
    operands = ", ".join(f"%{n}" for n in inputs)
    code = f'%out = "relay.{name}"({operands}) {{{attributes}}} : ({", ".join(inputs.values())}) -> {output}'
    return Case(inputs, code, output, expected, limits, strategy)


def concat(axis: int, pieces: list[str], output: str) -> Case:
    inputs = {f"x{i}": p for i, p in enumerate(pieces)}
    code = f"%out = tensor.concat dim({axis}) {', '.join(f'%{n}' for n in inputs)} : ({', '.join(pieces)}) -> {output}"
    return Case(inputs, code, output, lambda *arrays: np.concatenate(arrays, axis))


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    if not x.size:
        return x
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def layer_norm(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
    if not x.size:
        return x
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * gamma + beta


def scattered(x: np.ndarray, at: np.ndarray, update: np.ndarray) -> np.ndarray | None:
    """With one update for each element: of several the last one counts, which numpy does not promise."""
    if not x.shape[1]:
        return None
    found = x.copy()
    for row in range(x.shape[0]):
        for column in range(at.shape[1]):
            found[row, at[row, column]] = update[row, column]
    return found


NM, MN, BNM = tensor("n", "m"), tensor("m", "n"), tensor("b", "n", "m")
SMALL = {"b": 3, "h": 3}
CASES = {
    "add": case("add", {"x": NM, "y": NM}, NM, np.add),
    "add_row": case("add", {"x": BNM, "y": tensor("m")}, BNM, np.add, limits=SMALL),
    "add_column": case("subtract", {"x": BNM, "y": tensor("n", 1)}, BNM, np.subtract, limits=SMALL),
    "outer": case("multiply", {"x": tensor("n", 1), "y": tensor(1, "m")}, NM, np.multiply),
    "tanh": case("tanh", {"x": tensor("n")}, tensor("n"), np.tanh),
    "bytes": case("abs", {"x": tensor("n", "m", dtype="i8")}, tensor("n", "m", dtype="i8"), np.abs),
    "doubles": case("exp", {"x": tensor("n", 5, dtype="f64")}, tensor("n", 5, dtype="f64"), np.exp),
    "cast": case("cast", {"x": tensor("n", "m", dtype="i8")}, NM, lambda x: x.astype(np.float32), 'dtype = "float32"'),
    "divide_ints": case(
        "divide",
        {"x": tensor("n", dtype="i32"), "y": tensor("n", dtype="i32")},
        tensor("n", dtype="i32"),
        lambda x, y: np.trunc(x / np.where(y == 0, 1, y)).astype(np.int32) if y.all() else None,
    ),
    "transpose": case("transpose", {"x": NM}, MN, np.transpose),
    "transpose_bytes": case("transpose", {"x": tensor("n", "m", dtype="i8")}, tensor("m", "n", dtype="i8"), np.transpose),
    "heads": case(
        "transpose",
        {"x": tensor("b", "n", "h", 20)},
        tensor("b", "h", "n", 20),
        lambda x: x.transpose(0, 2, 1, 3),
        "axes = array<i64: 0, 2, 1, 3>",
        SMALL,
    ),
    "keys": case(
        "transpose",
        {"x": tensor("b", "n", "h", 20)},
        tensor("b", "h", 20, "n"),
        lambda x: x.transpose(0, 2, 3, 1),
        "axes = array<i64: 0, 2, 3, 1>",
        SMALL,
    ),
    "reverse": case("reverse", {"x": NM}, NM, lambda x: x[:, ::-1], "axis = 1"),
    "past": concat(2, [tensor("b", "h", "p", 8), tensor("b", "h", "n", 8)], tensor("b", "h", "n + p", 8)),
    "concat": concat(1, [tensor("b", "p"), tensor("b", 3), tensor("b", "n")], tensor("b", "n + p + 3")),
    "pad": case(
        "nn_pad",
        {"x": NM, "value": "tensor<f32>"},
        tensor("n + 1", "m + 5"),
        lambda x, v: np.pad(x, ((0, 1), (2, 3)), constant_values=v),
        "pad_width = array<i64: 0, 1, 2, 3>",
    ),
    "take": case(
        "take",
        {"x": tensor("v", 12), "at": tensor("b", "n", dtype="i64")},
        tensor("b", "n", 12),
        lambda x, at: x[at] if len(x) else None,
        "axis = 0",
        SMALL,
    ),
    "gather": case(
        "gather",
        {"x": tensor("b", "v"), "at": tensor("b", "n", dtype="i64")},
        tensor("b", "n"),
        lambda x, at: np.take_along_axis(x, at, 1) if x.shape[1] else None,
        "axis = 1, in_bounds = true",
        SMALL,
    ),
    "sum": case("sum", {"x": NM}, tensor("n"), lambda x: x.sum(1), "axis = array<i64: 1>"),
    "sum_columns": case("sum", {"x": NM}, tensor("m"), lambda x: x.sum(0), "axis = array<i64: 0>"),
    "sum_all": case("sum", {"x": NM}, "tensor<f32>", lambda x: x.sum(), "axis = array<i64: 0, 1>"),
    "sum_outside": case("sum", {"x": BNM}, tensor("n"), lambda x: x.sum((0, 2)), "axis = array<i64: 0, 2>", SMALL),
    "max": case("max", {"x": BNM}, tensor("b", "n"), lambda x: x.max(2, initial=-np.inf), "axis = array<i64: 2>", SMALL),
    "max_bytes": case(
        "max", {"x": tensor("n", "m", dtype="i8")}, tensor("n", dtype="i8"), lambda x: x.max(1, initial=-128), "axis = array<i64: 1>"
    ),
    "mean": case("mean", {"x": BNM}, tensor("b"), lambda x: x.mean((1, 2)) if x.size else None, "axis = array<i64: 1, 2>", SMALL),
    "argmax": case("argmax", {"x": NM}, tensor("n", dtype="i32"), lambda x: x.argmax(1) if x.size else None, "axis = array<i64: 1>"),
    "argmax_columns": case(
        "argmax", {"x": NM}, tensor("m", dtype="i32"), lambda x: x.argmax(0) if x.size else None, "axis = array<i64: 0>"
    ),
    "softmax": case("nn_softmax", {"x": BNM}, BNM, softmax, limits=SMALL),
    "softmax_columns": case("nn_softmax", {"x": BNM}, BNM, lambda x: softmax(x, 1), "axis = 1", SMALL),
    "log_softmax": case("nn_log_softmax", {"x": NM}, NM, lambda x: np.log(softmax(x))),
    "layer_norm": case("nn_layer_norm", {"x": NM, "gamma": tensor("m"), "beta": tensor("m")}, NM, layer_norm),
    "cumsum": case("cumsum", {"x": NM}, NM, lambda x: x.cumsum(1), "axis = 1", strategy="bufferize"),
    "cumsum_columns": case("cumsum", {"x": NM}, NM, lambda x: x.cumsum(0), "axis = 0", strategy="bufferize"),
    "cumsum_flat": case("cumsum", {"x": tensor("n")}, tensor("n"), lambda x: x.cumsum(), "axis = 0", strategy="bufferize"),
    "sort": case("sort", {"x": NM}, NM, lambda x: np.sort(x, 1), "axis = 1", strategy="bufferize"),
    "argsort": case(
        "argsort",
        {"x": NM},
        tensor("n", "m", dtype="i32"),
        lambda x: np.argsort(x, 1, kind="stable"),
        'axis = 1, dtype = "int32"',
        strategy="bufferize",
    ),
    "scatter": case(
        "scatter_elements",
        {"x": tensor("n", "v"), "at": tensor("n", "k", dtype="i64"), "update": tensor("n", "k")},
        tensor("n", "v"),
        scattered,
        "axis = 1",
        strategy="bufferize",
    ),
}


def array(type_: str, sizes: Mapping[str, int], seed: int) -> np.ndarray:
    """Values of a type; indices (i64) are positions in a dimension of size v."""
    dims = re.match(r"tensor<([^,>]*)", with_sizes(type_, sizes))
    assert dims is not None
    *shape, element = dims.group(1).split("x")
    if element == "i64":
        return np.random.default_rng(seed).integers(0, max(1, sizes["v"]), [int(d) for d in shape])
    dtype = {"f32": "float32", "f64": "float64", "i8": "int8", "i32": "int32"}[element]
    return values([int(d) for d in shape], dtype, seed)


def check(found: Case, fixed: Mapping[str, int], several: list[dict[str, int]], target: Target) -> None:
    """One kernel in which some sizes are fixed, at several values of the others."""
    text = with_symbols(found.text(), fixed)
    with relayc.PassContext(disabled_pass=["CheckIndices"]):  # a kernel of its own; indices are in range
        kernel = SymbolicKernel(text, target)
    assert kernel.schedule.split()[0] == found.strategy
    for sizes in several:
        sizes = {**sizes, **fixed}
        arrays = [array(t, sizes, i) for i, t in enumerate(found.inputs.values())]
        with np.errstate(divide="ignore", invalid="ignore"):
            expected = found.expected(*arrays)
        if expected is None:
            continue
        (result,) = kernel(sizes, arrays)
        assert result.shape == np.shape(expected), sizes
        # Sums of up to 130 x 130 normal numbers in another order: 2e-5 of their spread, which is 130.
        exact = result.dtype.kind in "iu"
        np.testing.assert_allclose(result, expected, rtol=0 if exact else 2e-5, atol=0 if exact else 3e-4, err_msg=str(sizes))


def with_symbols(text: str, fixed: Mapping[str, int]) -> str:
    """The text in which some symbols are numbers and the others stay."""

    def type_(match: re.Match) -> str:
        names = iter(re.findall(r'"([^"]*)"', match.group(2)))
        sizes = [d if d != "?" else substitute(parse(next(names)), fixed) for d in match.group(1).split("x")]
        dims = "x".join("?" if is_symbolic(d) else str(d) for d in sizes)
        left = ", ".join(f'"{d}"' for d in sizes if is_symbolic(d))
        return f"tensor<{dims}, [{left}]>" if left else f"tensor<{dims}>"

    return re.sub(r"tensor<([^<>,]*), \[([^\]]*)\]>", type_, text)


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=2, deadline=None, derandomize=True)
@given(data=st.data())
def test_any_dimensions_may_be_symbolic(name, data):
    found = CASES[name]
    sizes = {s: st.sampled_from([n for n in SIZES if n <= (found.limits or {}).get(s, 130)]) for s in found.symbols}
    symbolic = data.draw(st.sets(st.sampled_from(found.symbols), min_size=1))
    fixed = {s: data.draw(sizes[s].filter(lambda n: n > 1)) for s in found.symbols if s not in symbolic}
    several = data.draw(st.lists(st.fixed_dictionaries({s: sizes[s] for s in sorted(symbolic)}), min_size=10, max_size=10))
    check(found, fixed, several, TARGETS[data.draw(st.sampled_from(sorted(TARGETS)))])


@pytest.mark.parametrize("target", ["native", "sse"])
@pytest.mark.parametrize("name", ["add_row", "bytes", "transpose", "softmax", "layer_norm", "sum", "max_bytes", "gather", "concat"])
def test_all_sizes_around_the_widths_of_vectors(name, target):
    found = CASES[name]
    several = [{s: min(n, (found.limits or {}).get(s, n)) if s != "m" else n for s in found.symbols} for n in SIZES]
    several += [{s: n if s in ("m", "p") else min(3, (found.limits or {}).get(s, 3)) for s in found.symbols} for n in SIZES]
    several += [{s: n if s in ("n", "v") else 2 for s in found.symbols} for n in SIZES]
    check(found, {}, several, TARGETS[target])


@pytest.mark.parametrize("name", ["add", "add_row", "transpose", "heads", "keys", "softmax", "take", "past", "sum_columns"])
def test_work_for_several_threads(name):
    found = CASES[name]
    large = {"b": 2, "h": 4, "n": 300, "m": 301, "v": 50, "p": 77}
    one = {**large, "b": 1, "h": 1, "n": 1, "m": 70001}
    rows = {**large, "n": 20001, "m": 3, "h": 1, "b": 1}
    check(found, {}, [{s: sizes[s] for s in found.symbols} for sizes in (large, one, rows)], TARGETS["native"])


def test_sums_go_on_from_one_loop_of_a_reduction_to_the_next():
    """Over loops that are not one in memory: the inner one, of several vectors side by side, begins with the sums of those before."""
    check(CASES["sum_outside"], {}, [{"b": 3, "n": 2, "m": m} for m in (100, 256, 301)], TARGETS["native"])
