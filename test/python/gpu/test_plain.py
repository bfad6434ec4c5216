"""Kernels without synchronisation: loops over blocks and threads."""

import numpy as np
import pytest
from gpu_kernels import emulated, only_function, strategy
from oracle import values
from support import program
from symbolic_ops import symbolic_program, tensor

from relayc.dialects.mlir import gpu, ir, make_context, scf
from relayc.dialects.operations import constant_of, walk
from relayc.dialects.relay import build
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var, linearize
from relayc.pipelines.targets.gpu.loops import _Function, launch_loops
from relayc.pipelines.tir.strategy.scheduled import Scheduled, kernel_function
from relayc.symbolic import Range, ceil_div

THREADS = 64


def schedule_elements(kernel, target, tuning):
    """A block for some elements of each row of the one result of two dimensions, a thread for each of them."""
    (node,) = kernel.results
    rows, columns = node.shape
    with kernel_function(kernel) as body:
        sizes = [emit.index_constant(n) for n in (ceil_div(columns, THREADS), rows, 1, THREADS, 1, 1)]
        counts = ir.DenseI32ArrayAttr.get([0, *[1] * 6, *[0] * 5])
        launch = ir.Operation.create("gpu.launch", operands=sizes, attributes={"operandSegmentSizes": counts}, regions=1)
        block = launch.regions[0].blocks.append(*[ir.IndexType.get()] * 12)
        group, row, _, thread = list(block.arguments)[:4]
        with ir.InsertionPoint(block):
            column = emit.arith("addi", emit.arith("muli", group, emit.index_constant(THREADS)), thread)
            inside = scf.IfOp(emit.compare("ult", column, emit.index_constant(columns)))
            with ir.InsertionPoint(inside.then_block), body.evaluator.scope():
                place = [Index.of(Var(0, rows - 1, row)), Index.of(Var(0, columns - 1, column))]
                value = body.evaluator.at(node, place)
                body.evaluator.store(value, body.outputs[0], linearize(place, node.shape))
                emit.yield_values([])
            emit.create("gpu.terminator", [], [])
    return Scheduled(body.function)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_a_program_runs_its_kernels_on_the_cpu(arch):
    x, y = values((7, 100)), values((7, 100), seed=1)
    with strategy(schedule_elements):
        module = compile(
            program(lambda a, b: [build("multiply", build("add", a, b), a)], [x, y]), target=Target("cuda", arch=arch, emulate=True)
        )
    assert [kernel.schedule for kernel in module.kernels] == ["test"]
    np.testing.assert_allclose(module["main"](x, y), (x + y) * x, rtol=1e-6)


def test_a_symbolic_program_launches_as_many_blocks_as_a_call_needs():
    x = values((5, 100))
    with strategy(schedule_elements):
        mod = symbolic_program(lambda a: [build("add", a, a)], [tensor("float32[n, 100]")], {"n": Range(1)})
        module = compile(mod, target=Target("cuda", emulate=True))
    for rows in (1, 5):
        np.testing.assert_array_equal(module["main"](x[:rows]), x[:rows] + x[:rows])


LAUNCH = """
func.func private @k(%x: memref<6x4x10xi32>, %y: memref<240xi32>, %n: index) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.addi %c4, %c4 : index
  %flat = memref.collapse_shape %x [[0, 1, 2]] : memref<6x4x10xi32> into memref<240xi32>
  gpu.launch blocks(%b0, %b1, %b2) in (%g0 = %c5, %g1 = %c2, %g2 = %n)
             threads(%t0, %t1, %t2) in (%s0 = %c2, %s1 = %c2, %s2 = %c1)
             private(%p : memref<1xi32, #gpu.address_space<private>>) {
    %c0 = arith.constant 0 : index
    %z0 = arith.muli %b2, %g1 : index
    %z1 = arith.addi %z0, %b1 : index
    %z2 = arith.muli %z1, %s1 : index
    %z3 = arith.addi %z2, %t1 : index
    %z4 = arith.muli %z3, %g0 : index
    %z5 = arith.addi %z4, %b0 : index
    %z6 = arith.muli %z5, %s0 : index
    %i = arith.addi %z6, %t0 : index
    %warp = gpu.lane_id
    %w = arith.index_cast %warp : index to i32
    %v = memref.load %flat[%i] : memref<240xi32>
    %u = arith.muli %v, %w : i32
    memref.store %u, %p[%c0] : memref<1xi32, #gpu.address_space<private>>
    %r = memref.load %p[%c0] : memref<1xi32, #gpu.address_space<private>>
    memref.store %r, %y[%i] : memref<240xi32>
    gpu.terminator
  }
  gpu.launch blocks(%b0, %b1, %b2) in (%g0 = %c3, %g1 = %c1, %g2 = %c1) threads(%t0, %t1, %t2) in (%s0 = %c8, %s1 = %c1, %s2 = %c1) {
    %j = affine.apply affine_map<(b, t) -> (b * 8 + t)>(%b0, %t0)
    %v = memref.load %y[%j] : memref<240xi32>
    %u = arith.addi %v, %v : i32
    memref.store %u, %y[%j] : memref<240xi32>
    gpu.terminator
  }
  return
}
"""


def test_grids_and_blocks_of_three_dimensions_and_launches_in_order():
    x, y = values((6, 4, 10), "int32"), np.zeros(240, np.int32)
    emulated(LAUNCH)["k"](x, y, 6)
    # A block has 2 x 2 threads, which are 0 to 3 of its one warp.
    lanes = np.broadcast_to(np.arange(4, dtype=np.int32).reshape(1, 1, 2, 1, 2), (6, 2, 2, 5, 2)).reshape(-1)
    expected = x.reshape(-1) * lanes
    expected[:24] *= 2
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("%g0 = %c3, ", "%g0 = %zero, ", "kernel k_1 at .*: grid size x: expected at least 1, found 0"),
        ("%s1 = %c1, ", "%s1 = %zero, ", "kernel k_1 at .*: block size y: expected at least 1, found 0"),
        (
            "gpu.launch blocks",
            "gpu.launch clusters(%u0, %u1, %u2) in (%v0 = %c1, %v1 = %c1, %v2 = %c1) blocks",
            "kernel k_1 at .*: expected a launch of blocks, found one of clusters of blocks",
        ),
        (
            "%warp = gpu.lane_id",
            "%warp = gpu.cluster_block_id x",
            "kernel k_0 at .*: expected operations that .*, found gpu.cluster_block_id",
        ),
    ],
)
def test_what_cannot_be_launched_is_refused(old, new, message):
    text = new.join(LAUNCH.rsplit(old, 1)).replace("%c1 = arith", "%zero = arith.constant 0 : index\n  %c1 = arith", 1)
    with pytest.raises(ValueError, match=message):
        emulated(text)


TURNED = """
func.func @k(%x: memref<4x64xf32>, %y: memref<4x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c63 = arith.constant 63 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<64xf32>
  BEFORE
  scf.for %i = %c0 to %c4 step %c1 {
    scf.for %j = %c0 to %c64 step %c1 {
      %v = memref.load %x[%i, %j] : memref<4x64xf32>
      memref.store %v, %t[%j] : memref<64xf32>
    }
    scf.for %j = %c0 to %c64 step %c1 {
      %last = arith.subi %c63, %j : index
      %v = memref.load %t[%last] : memref<64xf32>
      memref.store %v, %y[%i, %j] : memref<4x64xf32>
    }
  }
  return
}
"""


@pytest.mark.parametrize(
    ("before", "copies"),
    [("", 4), ("memref.store %zero, %t[%c0] : memref<64xf32>", 1)],
    ids=["a buffer of the loop", "a buffer that is written before"],
)
def test_a_buffer_that_only_a_loop_uses_is_one_for_each_thread(before, copies):
    with only_function(TURNED.replace("BEFORE", before)) as function:
        assert _Function(function).run() == copies * 64 * 4


def test_a_temporary_of_a_size_in_memory_is_refused():
    text = """
func.func @k(%n: memref<1xindex>, %y: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %size = memref.load %n[%c0] : memref<1xindex>
  %t = memref.alloc(%size) : memref<?xf32>
  %v = memref.load %t[%c0] : memref<?xf32>
  memref.store %v, %y[%c0] : memref<4xf32>
  return
}"""
    message = r"^kernel @k at .*: expected temporaries whose sizes the shapes say, found memref<\?xf32>$"
    with only_function(text) as function, pytest.raises(ValueError, match=message):
        _Function(function).run()


FORM = "memref.expand_shape %t [[0, 1]] output_shape [8, 8] : memref<64xf32> into memref<8x8xf32>"
ROWS = "memref.expand_shape %y [[0], [1, 2]] output_shape [4, 8, 8] : memref<4x64xf32> into memref<4x8x8xf32>"
LINE = "scf.parallel (%i) = (%c0) to (%c64) step (%c1) { memref.store %zero, %y[%c0, %i] : memref<4x64xf32> scf.reduce }"
LAUNCHES = {
    "a buffer of the loop in two forms": (
        f"""%t = memref.alloc() : memref<64xf32>
        scf.for %i = %c0 to %c4 step %c1 {{
          %e = {FORM}
          scf.for %j = %c0 to %c8 step %c1 {{ memref.store %zero, %e[%j, %j] : memref<8x8xf32> }}
          scf.for %j = %c0 to %c64 step %c1 {{
            %v = memref.load %t[%j] : memref<64xf32>
            memref.store %v, %y[%i, %j] : memref<4x64xf32>
          }}
        }}""",
        [256],
        4 * 256,
    ),
    "a buffer that has another form outside": (
        f"""%t = memref.alloc() : memref<64xf32>
        %e = {FORM}
        scf.for %i = %c0 to %c4 step %c1 {{
          scf.for %j = %c0 to %c8 step %c1 {{ memref.store %zero, %e[%j, %j] : memref<8x8xf32> }}
          scf.for %j = %c0 to %c64 step %c1 {{
            %v = memref.load %t[%j] : memref<64xf32>
            memref.store %v, %y[%i, %j] : memref<4x64xf32>
          }}
        }}""",
        [1],
        256,
    ),
    "rows of their own": (
        f"""%e = {ROWS}
        scf.for %i = %c0 to %c4 step %c1 {{
          memref.store %zero, %e[%i, %c0, %c0] : memref<4x8x8xf32>
          memref.store %zero, %e[%i, %c0, %c4] : memref<4x8x8xf32>
        }}""",
        [256],
        0,
    ),
    "rows in two forms": (
        f"""%e = {ROWS}
        scf.for %i = %c0 to %c4 step %c1 {{
          memref.store %zero, %e[%i, %c0, %c0] : memref<4x8x8xf32>
          memref.store %zero, %y[%i, %c4] : memref<4x64xf32>
        }}""",
        [1],
        0,
    ),
    "elements that iterations share": (
        """scf.for %i = %c0 to %c4 step %c1 {
          memref.store %zero, %y[%c0, %i] : memref<4x64xf32>
          memref.store %zero, %y[%i, %c0] : memref<4x64xf32>
        }""",
        [1],
        0,
    ),
    "accesses of another kind": (
        """scf.for %i = %c0 to %c4 step %c1 {
          %w = vector.load %x[%i, %c0] : memref<4x64xf32>, vector<4xf32>
          vector.store %w, %y[%i, %c0] : memref<4x64xf32>, vector<4xf32>
        }""",
        [1],
        0,
    ),
    "no operations": ("scf.for %i = %c0 to %c64 step %c1 { }", [256], 0),
    "no iterations": (LINE.replace("(%c0)", "(%c64)"), [], 0),
    "a loop of launches": (f"scf.for %k = %c0 to %c4 step %c1 {{ {LINE} }}", [256], 0),
    "a branch of launches": (f"scf.if %p {{ {LINE} }} else {{ memref.store %zero, %y[%c0, %c0] : memref<4x64xf32> }}", [256, 1], 0),
    "a buffer that is freed": (
        f"""%t = memref.alloc() : memref<64xf32>
        {LINE.replace("%y[%c0, %i] : memref<4x64xf32>", "%t[%i] : memref<64xf32>")}
        memref.dealloc %t : memref<64xf32>""",
        [256],
        256,
    ),
}


@pytest.mark.parametrize("case", LAUNCHES)
def test_threads_of_loops(case):
    """Of launches, and the bytes of their workspace. Blocks have 256 threads, or one where iterations are not independent."""
    body, threads, workspace = LAUNCHES[case]
    constants = " ".join(f"%c{n} = arith.constant {n} : index" for n in (0, 1, 4, 8, 64))
    text = f"""func.func @k(%x: memref<4x64xf32>, %y: memref<4x64xf32>, %p: i1) {{
  {constants} %zero = arith.constant 0.0 : f32
  {body}
  return
}}"""
    with only_function(text) as function:
        assert _Function(function).run() == workspace and function.operation.verify()
        assert [constant_of(launch.operation.operands[3]) for launch in walk(function.operation, gpu.LaunchOp)] == threads
        assert "memref.dealloc" not in str(function)


def test_what_launches_are_made_of_is_verified(monkeypatch):
    """So that a kernel that comes out wrong is an error."""

    def run(self):
        (buffer,) = self.block.arguments
        with ir.InsertionPoint.at_block_begin(self.block), ir.Location.unknown():
            zero = emit.index_constant(0)
            ir.Operation.create("memref.store", operands=[zero, buffer, zero])  # of an index as a float
        return 0

    monkeypatch.setattr(_Function, "run", run)
    with make_context():
        module = ir.Module.parse("func.func private @f(%x: memref<4xf32>) { return }")
        with pytest.raises(ir.MLIRError, match=r"memref\.store"):
            launch_loops(module)
