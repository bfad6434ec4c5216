"""Running sums and products on GPUs, emulated: lines of which a block of threads each takes, and lines side by side, against numpy."""

from types import SimpleNamespace

import numpy as np
import pytest
from gpu_kernels import only_function
from oracle import values
from support import program
from symbolic_ops import symbolic_program, tensor

from relayc.dialects.relay import build
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile
from relayc.pipelines.targets.gpu.loops import _Function, _is_for_blocks
from relayc.pipelines.targets.gpu.scans import Scan
from relayc.symbolic import Range

EMULATED = Target("cuda", arch="sm_80", emulate=True, num_threads=2)


def compiled(fed):
    with PassContext(config={"gpu.check_races": True}):
        return compile(fed, target=EMULATED)


def exclusive(found, axis, first):
    """Each running sum or product without the element itself."""
    return np.insert(np.delete(found, -1, axis), 0, first, axis)


def test_lines():
    """Lines of one part, of several, of whole parts and of none; along memory and across."""
    line, matrix, cube = (np.round(values(shape) * 2).astype(np.int64) for shape in ((700,), (3, 256), (2, 37, 5)))
    ones = np.where(values((2, 300)) > 0, 1, -1).astype(np.int64)
    module = compiled(
        program(
            lambda a, b, c, d: [
                build("cumsum", a, axis=0),
                build("cumsum", b, axis=1, exclusive=True),
                build("cumsum", c, axis=1),
                build("cumprod", d, axis=1, exclusive=True),
                build("cumsum", b, axis=0),
            ],
            [line, matrix, cube, ones],
        )
    )
    expected = [
        line.cumsum(),
        exclusive(matrix.cumsum(1), 1, 0),
        cube.cumsum(1),
        exclusive(ones.cumprod(1), 1, 1),
        matrix.cumsum(0),
    ]
    for found, exact in zip(module["main"](line, matrix, cube, ones), expected, strict=True):
        np.testing.assert_array_equal(found, exact)


def test_symbolic_lengths():
    body = lambda a: [build("cumsum", a, axis=1), build("cumsum", a, axis=0)]  # noqa: E731 (an argument, not a definition)
    module = compiled(symbolic_program(body, [tensor("float32[m, n]")], {"m": Range(0), "n": Range(0)}))
    for shape in ((1, 1), (2, 31), (3, 256), (1, 513), (0, 5), (4, 0)):
        array = values(shape)
        for axis, found in zip((1, 0), module["main"](array), strict=True):
            np.testing.assert_allclose(found, array.cumsum(axis), rtol=0, atol=1e-4)


def test_parts_of_long_lines():
    """Blocks that share lines: of whole numbers of parts and of others, and where the rest of a line is in fewer parts."""
    body = lambda a, b, c: [build("cumsum", a, axis=0), build("cumsum", b, axis=1, exclusive=True), build("cumsum", c, axis=0)]  # noqa: E731
    ranges = {"n": Range(0, 1 << 20, 20000)}
    rng = np.random.default_rng(0)
    across, lines = (rng.integers(-9, 9, shape) for shape in ((8193, 2), (2, 16384)))
    types = [tensor("int64[8193, 2]"), tensor("int64[2, 16384]"), tensor("int64[n]")]
    module = compiled(symbolic_program(body, types, ranges))
    for n in (20000, 0, 1, 257, 9000):
        line = rng.integers(-9, 9, n)
        for found, expected in zip(
            module["main"](across, lines, line), (across.cumsum(0), exclusive(lines.cumsum(1), 1, 0), line.cumsum()), strict=True
        ):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("count", "is_along_memory", "lines", "expected"),
    [(31, True, 1, False), (32, True, 5000, True), (32, False, 4095, True), (32, False, 4096, False), (33, False, 1, True)],
)
def test_blocks_go_along_long_lines(count, is_along_memory, lines, expected):
    """From a warp on, along memory or where there are few lines."""
    assert _is_for_blocks(SimpleNamespace(level=SimpleNamespace(count=count), is_along_memory=is_along_memory), lines) is expected


SCAN = """
func.func @k(%x: memref<4x64xf32>, %y: memref<4x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  scf.parallel (%i) = (%c0) to (%c4) step (%c1) {
    BEFORE
    %s = scf.for %j = %c0 to END step %c1 iter_args(%before = %zero) -> (f32) {
      %v = memref.load READ : memref<READ_TYPE>
      %n = arith.addf %before, %v : f32
      memref.store %n, %y[%i, %j] : memref<4x64xf32>
      scf.yield %n : f32
    }
    scf.reduce
  }
  return
}
"""
COPY = """%t = memref.alloc() : memref<64xf32>
    scf.for %j = %c0 to %c64 step %c1 {
      %v = memref.load %x[%i, %j] : memref<4x64xf32>
      memref.store %v, %t[%j] : memref<64xf32>
    }"""


LENGTH = """%f = memref.load %x[%i, %c0] : memref<4x64xf32>
    %w = arith.fptosi %f : f32 to i32
    %length = arith.index_cast %w : i32 to index"""


@pytest.mark.parametrize(
    ("before", "end", "read", "type_", "is_scan", "workspace"),
    [
        ("", "%c64", "%x[%i, %j]", "4x64xf32", True, 0),
        ("%o = arith.xori %i, %c1 : index", "%c64", "%x[%o, %j]", "4x64xf32", True, 0),
        (LENGTH, "%length", "%x[%i, %j]", "4x64xf32", False, 0),
        (COPY, "%c64", "%t[%j]", "64xf32", False, 4 * 64 * 4),
    ],
    ids=["of an argument", "of a line that is computed", "of a length in memory", "of memory of the thread"],
)
def test_threads_that_have_memory_of_their_own_scan_alone(before, end, read, type_, is_scan, workspace):
    """Of a line that a thread has made for itself, each of the four has its part of the workspace."""
    text = SCAN.replace("BEFORE", before).replace("END", end).replace("READ_TYPE", type_).replace("READ", read)
    with only_function(text) as function:
        assert _Function(function).run() == workspace and "scf.parallel" not in str(function)
        assert function.operation.verify() and ("gpu.shuffle" in str(function)) is is_scan


@pytest.mark.parametrize(
    "step",
    [
        "gpu.barrier\n%n = arith.addf %before, %v : f32",
        "%n = arith.subf %before, %v : f32",
        "%n = arith.addf %v, %v : f32",
        "%n = arith.addf %before, %before : f32",
        "%e = arith.mulf %before, %v : f32\n%n = arith.addf %before, %e : f32",
    ],
)
def test_a_loop_that_joins_no_elements_is_no_scan(step):
    """Beside something that threads do together, by what is not associative, or of what comes from the sum itself."""
    text = SCAN.replace("BEFORE", "").replace("END", "%c64").replace("READ_TYPE", "4x64xf32").replace("READ", "%x[%i, %j]")
    with only_function(text.replace("%n = arith.addf %before, %v : f32", step)) as function:
        assert _Function(function).run() == 0
        assert function.operation.verify() and "gpu.shuffle" not in str(function)


def test_a_scan_is_along_memory_where_one_of_its_operands_is():
    loads = {"x": "%a = memref.load %x[%i, %k] : memref<4x9xf32>", "w": "%b = memref.load %w[%k, %i] : memref<9x4xf32>"}
    for read, is_along in (("xw", True), ("x", True), ("w", False)):
        body = "\n".join(loads[name] for name in read)
        text = (
            f"func.func @f(%x: memref<4x9xf32>, %w: memref<9x4xf32>, %i: index) {{\nscf.for %k = %i to %i step %i {{\n{body}\n}}\nreturn }}"
        )
        with only_function(text) as function:
            loop = function.regions[0].blocks[0].operations[0].operation
            level = SimpleNamespace(variable=loop.regions[0].blocks[0].arguments[0])
            assert Scan(loop, level, None, None, None).is_along_memory is is_along
