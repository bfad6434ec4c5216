"""Loops over symbolic sizes reach LLVM with the hint to leave them as they are; static ones do not."""

import numpy as np
import pytest
from symbolic_kernels import with_sizes

import relayc
from relayc.dialects.mlir import ir, make_context
from relayc.dialects.relay import IRModule
from relayc.pipelines.targets.cpu import engine
from relayc.pipelines.targets.cpu.loop_hints import keep_loops

TEXT = """func.func @main(%x: tensor<?x768xf32, ["n"]> {relay.name = "x"}) -> tensor<?x768xf32, ["n"]> {
  %0 = "relay.nn_softmax"(%x) {axis = -1} : (tensor<?x768xf32, ["n"]>) -> tensor<?x768xf32, ["n"]>
  return %0 : tensor<?x768xf32, ["n"]>
}"""


@pytest.mark.parametrize("is_symbolic", [True, False])
def test_loops_of_symbolic_functions_are_left_alone(is_symbolic: bool) -> None:
    text = TEXT if is_symbolic else with_sizes(TEXT, {"n": 64})
    llvm = str(relayc.compile(IRModule.parse(text), "cpu -num-threads=2", stop_after="llvm", cache=False).module)
    branches = [line for line in llvm.splitlines() if "llvm.br " in line]
    assert branches
    hints = sum("loop_annotation = #loop_annotation" in line for line in branches)
    assert hints > 0 if is_symbolic else hints == 0
    assert "llvm.loop_annotation =" not in llvm


def test_what_is_left_over_behind_vectors_is_left_alone() -> None:
    """Elements of a byte have no masks: several vectors side by side, single ones, and elements are three loops."""
    text = """func.func @main(%x: tensor<?xui8, ["n"]> {relay.name = "x"}) -> tensor<?xui8, ["n"]> {
      %0 = "relay.add"(%x, %x) : (tensor<?xui8, ["n"]>, tensor<?xui8, ["n"]>) -> tensor<?xui8, ["n"]>
      return %0 : tensor<?xui8, ["n"]>
    }"""
    target = "cpu -num-threads=2 -mcpu=x86-64-v3"
    llvm = str(relayc.compile(IRModule.parse(text), target, stop_after="llvm", cache=False).module)
    branches = [line for line in llvm.splitlines() if "loop_annotation = #loop_annotation" in line]
    assert len(branches) == 3


@pytest.mark.parametrize(("operations", "iterations", "is_kept"), [(14, 16, False), (15, 8, True), (15, 1, False), (4, 17, True)])
def test_loops_of_few_iterations_are_left_to_llvm_where_their_body_is_short(operations: int, iterations: int, is_kept: bool) -> None:
    body = "\n".join(f"%x{i} = arith.addf %v, %v : vector<8xf32>" for i in range(operations))
    text = f"""func.func @kernel(%buffer: memref<?xf32>, %n: index {{relay.symbol = "n"}}) {{
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %end = arith.constant {iterations} : index
      scf.for %i = %zero to %end step %one {{
        %v = vector.load %buffer[%i] : memref<?xf32>, vector<8xf32>
        {body}
      }}
      return
    }}"""
    with make_context():
        module = ir.Module.parse(text)
        assert keep_loops(module)
    assert ("llvm.loop_annotation" in str(module)) == is_kept


@pytest.mark.parametrize(("size", "levels"), [("n", [1, 3]), (64, [3])])
def test_llvm_optimizes_where_it_has_loops_of_its_own(size: str | int, levels: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A sort has loops without vectors, a softmax of a symbolic number of rows has none. Each kernel is compiled by itself."""
    program = relayc.Program(dims={"n": (1, 100)})

    @program.function(x=relayc.TensorType((size, 64), "float32"))
    def main(x):  # type: ignore[no-untyped-def] # of values that are being built
        return program.op.nn.softmax(x), program.op.sort(x)

    relayc.compile(program, "cpu -num-threads=2", cache=False)  # the first one of a process compiles code of all programs, too

    found, call = set(), engine._call

    def spy(name: str, *arguments: object) -> object:
        if name == "mlirExecutionEngineCreate":
            found.add(arguments[1])
        return call(name, *arguments)

    monkeypatch.setattr(engine, "_call", spy)
    monkeypatch.setattr(engine, "MIN_PART_OPS", 1)
    monkeypatch.setattr(engine, "usable_cpus", lambda: 2)
    module = relayc.compile(program, "cpu -num-threads=2", cache=False)
    assert sorted(found) == levels
    x = np.random.default_rng(0).standard_normal((64, 64), dtype=np.float32)
    powers = np.exp(x.astype(np.float64))
    softmax, ordered = module["main"](x)
    assert np.array_equal(ordered, np.sort(x))
    # Exponentials and their sum of 64 positive terms, to some units in the last place.
    np.testing.assert_allclose(softmax, powers / powers.sum(-1, keepdims=True), rtol=2e-6)
