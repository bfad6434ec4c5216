"""Every operation that kernels may be made of has a lowering on every architecture: arithmetic, mathematical functions, conversions."""

import re
from collections.abc import Sequence

import pytest
from device_kernels import device_code, launched, ptx_of

from relayc.dialects.mlir import ir
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.targets.cuda.device.ptxas import tool
from relayc.pipelines.tir.gpu.aligned import align

# fmt: off
UNARY = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "tanh", "erf", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
    "asinh", "acosh", "atanh", "sqrt", "rsqrt", "ceil", "floor", "trunc", "round", "roundeven", "absf",
)
BINARY = (
    "addf", "subf", "mulf", "divf", "remf", "maximumf", "minimumf", "maxnumf", "minnumf",
)
INTEGER = (
    "addi", "subi", "muli", "divsi", "divui", "remsi", "remui", "ceildivsi", "ceildivui", "floordivsi", "andi", "ori", "xori", "shli",
    "shrsi", "shrui", "maxsi", "minsi", "maxui", "minui",
)
# fmt: on
BITS = ("absi", "ctlz", "cttz", "ctpop")
FLOATS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
LENGTH = 4096
WORDS = 4


def kernel(element: str, results: Sequence[str], lanes: int = 0) -> str:
    """A kernel that stores each of `results`, which compute %r of %v and %w of type TYPE, in a row of its own."""
    type_ = f"vector<{lanes}x{element}>" if lanes else element
    kind, suffix = ("vector", f", {type_}") if lanes else ("memref", "")
    line, table = f"memref<{LENGTH}x{element}>", f"memref<{len(results)}x{LENGTH}x{element}>"
    body = [f"%v = {kind}.load %x[%t] : {line}{suffix}", f"%w = {kind}.load %x[%b] : {line}{suffix}"]
    for i, result in enumerate(results):
        own = result.replace("TYPE", type_).replace("%r", f"%r{i}").replace("%q", f"%q{i}").replace("%p", f"%p{i}")
        body += [f"%i{i} = arith.constant {i} : index", own, f"{kind}.store %r{i}, %y[%i{i}, %t] : {table}{suffix}"]
    return launched(f"%x: {line}, %y: {table}", "\n".join(body))


def floats(element: str) -> list[str]:
    """Operations on floats of a type, and conversions to all others."""
    found = [f"%r = math.{name} %v : TYPE" for name in UNARY]
    found += [f"%r = arith.{name} %v, %w : TYPE" for name in BINARY]
    found += [
        "%r = math.powf %v, %w : TYPE",
        "%r = math.copysign %v, %w : TYPE",
        "%r = math.fma %v, %w, %v : TYPE",
        "%r = arith.negf %v : TYPE",
    ]
    return found


def conversions(element: str) -> list[str]:
    found = []
    for other, width in FLOATS.items():
        if FLOATS[element] < width:
            widened = f"%q = arith.extf %v : {element} to {other}\n%p = arith.addf %q, %q : {other}"
            found.append(f"{widened}\n%r = arith.truncf %p : {other} to {element}")
    for integer in ("i8", "i16", "i32", "i64"):
        for sign in ("si", "ui"):
            back = {"si": "sitofp", "ui": "uitofp"}[sign]
            found.append(f"%q = arith.fpto{sign} %v : {element} to {integer}\n%r = arith.{back} %q : {integer} to {element}")
    return found


def check(text: str, arch: str) -> None:
    (figures,) = device_code(text, arch).figures()
    assert figures.report is None or figures.report.registers > 0
    assert (figures.report is None) == (tool("ptxas") is None)


# What differs between architectures is arithmetic on 16 bits.
@pytest.mark.parametrize(("element", "arch"), [("f16", "sm_75"), ("bf16", "sm_75"), ("f32", "sm_100"), ("f64", "sm_90a")])
def test_floats(element: str, arch: str) -> None:
    check(kernel(element, floats(element) + conversions(element)), arch)


@pytest.mark.parametrize("arch", ["sm_80", "sm_100"])
def test_vectors_of_floats(arch: str) -> None:
    few = [f"%r = math.{name} %v : TYPE" for name in ("exp", "sqrt", "floor")]
    check(kernel("bf16", few + [f"%r = arith.{name} %v, %w : TYPE" for name in BINARY if name != "remf"], WORDS), arch)


@pytest.mark.parametrize(("width", "arch"), [(8, "sm_100"), (16, "sm_75"), (64, "sm_80")])
def test_integers(width: int, arch: str) -> None:
    results = [f"%r = arith.{name} %v, %w : TYPE" for name in INTEGER] + [f"%r = math.{name} %v : TYPE" for name in BITS]
    check(kernel(f"i{width}", results), arch)


@pytest.mark.parametrize(
    ("element", "kinds"),
    [
        ("f16", ["addf"]),
        ("bf16", ["addf"]),
        ("f32", ["addf", "maximumf", "minimumf", "maxnumf", "assign"]),
        ("f64", ["addf", "maximumf"]),
        ("i32", ["addi", "maxs", "minu", "ori", "andi"]),
        ("i64", ["addi", "maxs", "minu"]),
        ("i8", ["addi"]),
    ],
)
def test_atomic_updates(element: str, kinds: Sequence[str]) -> None:
    buffer = f"memref<{LENGTH}x{element}>"
    check(kernel(element, [f"%r = memref.atomic_rmw {kind} %v, %x[%b] : ({element}, {buffer}) -> {element}" for kind in kinds]), "sm_80")


@pytest.mark.parametrize("type_", ["f32", "i32", "f16", "bf16", "i8", "i64", "f64", "vector<2xf16>", "vector<4xf32>", "vector<3xi8>"])
def test_shuffles_of_all_types(type_: str) -> None:
    buffer = f"memref<{LENGTH}x{type_}>"
    body = f"""
    %v = memref.load %x[%t] : {buffer}
    %distance = arith.constant 3 : i32
    %width = arith.constant 16 : i32
    %o, %p = gpu.shuffle down %v, %distance, %width : {type_}
    scf.if %p {{
      memref.store %o, %x[%t] : {buffer}
    }}"""
    ptx = ptx_of(launched(f"%x: {buffer}", body))
    words = {"i64": 2, "f64": 2, "vector<4xf32>": 4, "vector<3xi8>": 3}.get(type_, 1)
    # Segments of 16 lanes: (32 - 16) << 8 | 31.
    assert len(re.findall(r"shfl\.sync\.down\.b32 .*, 3, 4127, -1;", ptx)) == words


@pytest.mark.parametrize(("first", "lanes", "found"), [(0, 2, 8), (0, 8, 16), (4, 8, 16), (2, 8, 8), (6, 4, 8), (1, 4, None), (4, 3, None)])
def test_vectors_are_aligned_as_their_first_element_is(first, lanes, found):
    """Up to 16 bytes, by halves of a vector."""
    text = f"func.func @f(%m: memref<64xf32>, %i: index) {{\n  %v = vector.load %m[%i] : memref<64xf32>, vector<{lanes}xf32>\n  return\n}}"
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        load = module.body.operations[0].regions[0].blocks[0].operations[0].operation
        align(load, Index(first, {Var(0, 3): 8}))
        assert ("alignment" in load.attributes) == (found is not None)
        assert found is None or ir.IntegerAttr(load.attributes["alignment"]).value == found
