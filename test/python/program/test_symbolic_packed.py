"""Packed functions on tensors whose sizes are symbols: they get tensors of the shapes of the call."""

import numpy as np
import pytest

import relayc
from relayc import TensorType
from relayc.dialects.relay import IRModule
from relayc.pipelines import PassContext, Verifier, find_pass

seen = []


@relayc.register_func("test.rows_of_both")
def rows_of_both(x, y, out, sums):
    seen.append([a.shape for a in (x, y, out, sums)])
    out[: len(x)], out[len(x) :] = x, y
    sums[...] = out.sum(axis=0)


def f32(*shape):
    return TensorType(shape, "float32")


def make(private=False, **options):
    program = relayc.Program()
    op = program.op
    results = [f32("n + m", 3), f32(3)]

    def joined(x, y):
        return program.call_packed("test.rows_of_both", [x * 2.0, y], results)

    if private:
        program.function(private=True, x=f32("n", 3), y=f32("m", 3))(joined)

    @program.function(x=f32("n", 3), y=f32("m", 3))
    def main(x, y):
        both, sums = program.call("joined", x, y) if private else joined(x, y)
        return op.tanh(both), sums + 1.0

    return relayc.compile(program, **options)


def expected(x, y):
    both = np.concatenate([2 * x, y])
    return np.tanh(both), both.sum(0) + 1


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("options", [{}, {"specialize": [{"n": 2}, {"n": 1, "m": 4}]}, {"dims": {"n": 2}}])
def test_a_packed_function_gets_the_shapes_of_the_call(private, options):
    with PassContext(instruments=[Verifier()]):
        module = make(private, **options)
    for n, m in ((2, 1), (1, 4), (2, 0), (5, 7)):
        if options.get("dims", {"n": n}) != {"n": n}:
            continue
        x, y = np.arange(3 * n, dtype=np.float32).reshape(n, 3) / 9, np.ones((m, 3), np.float32)
        seen.clear()
        for found, wanted in zip(module["main"](x, y), expected(x, y), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
        assert seen[0] == [(n, 3), (m, 3), (n + m, 3), (3,)] and len(seen) == 1


def test_sizes_of_data_and_profiles():
    program = relayc.Program()
    op = program.op

    @program.function(x=f32("n", 3), k=TensorType((), "int64"))
    def main(x, k):
        op.define_sizes(k, names=("k",))
        both, sums = program.call_packed("test.rows_of_both", [x, op.zeros(shape=("k", 3), dtype="float32")], [f32("n + k", 3), f32(3)])
        return op.exp(both), sums

    module = relayc.compile(program)
    for n, k in ((2, 3), (1, 0)):
        x = np.ones((n, 3), np.float32)
        found = module["main"](x, np.array(k))
        np.testing.assert_allclose(found[0], np.exp(np.concatenate([x, np.zeros((k, 3), np.float32)])), rtol=1e-6)
    profile = module.profile([np.ones((2, 3), np.float32), np.array(5)], repeat=1)
    packed = next(row for row in profile.rows if row.kernel.schedule == "packed function")
    assert packed.calls == 1 and packed.bytes == 4 * 3 * (2 + 5 + 7 + 1)


def test_sizes_that_only_the_function_knows_are_an_error():
    program = relayc.Program()

    @program.function(x=f32("n"))
    def main(x):
        return program.call_packed("test.found", [x], f32("k")) + 1.0

    message = "call_packed at .*: results of 'test.found': expected sizes that are known before the call, found k"
    with pytest.raises(relayc.RelayError, match=message):
        relayc.compile(program)


def test_a_program_that_fails_frees_what_it_has_allocated():
    mod = IRModule.parse("""
func.func @main(%n: index {relay.symbol = "n"}, %arena: memref<64xi8>, %params: memref<64xi8>) attributes {relay.tensors = () -> ()} {
  %one = arith.constant 1 : index
  %a = memref.alloc(%n) {relay.heap} : memref<?xi8>
  "relay.require"(%n, %one) {message = "n: expected 1 or more, found %lld", predicate = "ge"} : (index, index) -> ()
  memref.dealloc %a {relay.heap} : memref<?xi8>
  return
}""")
    mod = find_pass("emit-calls")(mod)
    mod.verify()
    freed = []  # from each place that fails
    for failing in mod.main.regions[0].blocks:
        names, block = [op.operation.name for op in failing.operations], failing
        if names[0] != "func.call":
            continue
        while block.operations[len(block.operations) - 1].operation.name == "cf.br":
            block = block.operations[len(block.operations) - 1].operation.successors[0]
            names += [op.operation.name for op in block.operations]
        assert names[-1] == "func.return"
        freed.append(names.count("memref.dealloc"))
    assert freed == [0, 1]  # where there is no memory, and where n is none that is allowed
