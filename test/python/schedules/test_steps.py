"""Steps of blocks: copies of them, and the steps that something uses."""

from relayc.dialects.mlir import ir, make_context
from relayc.pipelines.emission.index import Index, Var
from relayc.pipelines.tir.tree.steps import Recorder, Step, constant_of, copy_steps, live_steps


def test_copied_steps_keep_what_is_known_of_their_results() -> None:
    with make_context(), ir.Location.unknown():
        record, number = Recorder(False), constant_of(3, ir.IntegerType.get_signless(32))
        index = record.make("arith.index_cast", ir.IndexType.get(), [number])
        (var,) = index.terms
        var.low, var.high = 0, 7
        i, j = Var.below(4, name="i"), Var.below(4, name="j")
        record.make("arith.addi", ir.IndexType.get(), [index + i, Index(1)])
        first, second = copy_steps(record.steps, {i: Index.of(j)}, False)
    assert first.var is not None and first.var is not var
    assert (first.var.low, first.var.high) == (0, 7)
    assert second.operands[0].terms == {first.var: 1, j: 1}


def test_steps_that_nothing_uses_are_left_out() -> None:
    with make_context(), ir.Location.unknown():
        record, type_ = Recorder(False), ir.IntegerType.get_signless(32)
        one = constant_of(1, type_)
        record.make("arith.muli", type_, [one, one])
        index = record.make("arith.index_cast", ir.IndexType.get(), [one])
        unused = record.make("arith.addi", type_, [one, one])
        record.make("arith.addi", type_, [unused, one])
        used = record.make("arith.subi", type_, [one, one])
        # A store without a buffer: only its operand and its place count.
        record.steps.append(Step("memref.store", (used, index)))
        live = live_steps(record.steps, False)
    assert [step.name for step in live] == ["arith.index_cast", "arith.subi", "memref.store"]
    assert live[-1].operands[0] == 1 and set(live[-1].operands[1].terms) == {live[0].var}
