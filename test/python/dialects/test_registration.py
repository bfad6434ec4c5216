"""MLIR knows the relay dialect: what it refuses, verifies and optimises by itself."""

import pytest

from relayc.dialects.mlir import ir, make_context
from relayc.dialects.operation_set import OperationSet
from relayc.dialects.relay import OPS, IRModule, Op, RelayError, TensorType, build, make_tuple
from relayc.dialects.relay.base import Operand, View
from relayc.dialects.relay.registration import is_pure
from relayc.pipelines.context.upstream import run_upstream


def program(body: str, arguments: str = "%x: tensor<4xf32>, %c: tensor<i1>") -> IRModule:
    return IRModule.parse(f"func.func @main({arguments}) {{\n{body}\nreturn\n}}")


def names(mod: IRModule) -> list[str]:
    return [op.operation.name for op in mod.main.regions[0].blocks[0].operations][:-1]


def test_every_context_knows_every_operator():
    for _ in range(2):
        with make_context() as context:
            for cls in OPS.values():
                assert context.is_registered_operation(cls.OPERATION_NAME), cls.OPERATION_NAME


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('%0 = "relay.nonsense"(%x) : (tensor<4xf32>) -> tensor<4xf32>', "unregistered operation 'relay.nonsense' found in dialect"),
        ('%0 = "rellay.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>', "unregistered dialect"),
        ('%0:2 = "relay.topk"(%x) {k = 1} : (tensor<4xf32>) -> (tensor<1xf32>, tensor<1xf32>)', r"tensor<1xi32>, found .*tensor<1xf32>"),
        ('%0 = "relay.exp"(%x) ({}) : (tensor<4xf32>) -> tensor<4xf32>', "region"),
        ('"relay.yield"(%x) : (tensor<4xf32>) -> ()', "must be the last operation in the parent block"),
    ],
)
def test_a_wrong_operation_is_refused_when_text_is_read(line, message):
    with pytest.raises((ir.MLIRError, RelayError), match=message):
        program(line)


def test_mlir_runs_the_type_relation_of_what_python_changed():
    mod = program('%0 = "relay.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>')
    with mod.context, ir.Location.unknown():
        mod.main.regions[0].blocks[0].operations[0].result.set_type(TensorType((5,), "float32").to_mlir())
        with pytest.raises(RelayError, match=r"relay\.exp at .*: expected result type"):
            mod.module.operation.verify()


def test_upstream_passes_merge_and_remove_pure_operators():
    mod = program("""
      %0 = "relay.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
      %1 = "relay.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
      func.call @main(%0, %c) : (tensor<4xf32>, tensor<i1>) -> ()
      func.call @main(%1, %c) : (tensor<4xf32>, tensor<i1>) -> ()
      %2 = "relay.add"(%1, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>""")
    run_upstream(mod.module.operation, "canonicalize,cse")
    assert names(mod) == ["relay.exp", "func.call", "func.call"]


def test_an_operator_with_effects_stays():
    class Log(Op, name="test_log"):
        """Writes its operand somewhere."""

        data: Operand
        pure = False

        @staticmethod
        def infer(op: View) -> TensorType:
            return op.data

    try:
        mod = program("""
          %0 = "relay.test_log"(%x) : (tensor<4xf32>) -> tensor<4xf32>
          %1 = "relay.if"(%c) ({
            %2 = "relay.test_log"(%x) : (tensor<4xf32>) -> tensor<4xf32>
            "relay.yield"(%2) : (tensor<4xf32>) -> ()
          }, {
            "relay.yield"(%x) : (tensor<4xf32>) -> ()
          }) : (tensor<i1>) -> tensor<4xf32>
          %3 = "relay.if"(%c) ({
            "relay.yield"(%x) : (tensor<4xf32>) -> ()
          }, {
            "relay.yield"(%x) : (tensor<4xf32>) -> ()
          }) : (tensor<i1>) -> tensor<4xf32>""")
        found = list(mod.main.regions[0].blocks[0].operations)
        assert [is_pure(op.operation) for op in found[:3]] == [False, False, True]
        run_upstream(mod.module.operation, "canonicalize,cse")
        assert names(mod) == ["relay.test_log", "relay.if"]
    finally:
        del OPS["test_log"]


def test_concatenate_is_upstreams_and_reads_like_any_operator():
    mod = program("", "%x: tensor<2x3xf32>, %y: tensor<2x4xf32>")
    block = mod.main.regions[0].blocks[0]
    with mod.context, ir.Location.unknown(), ir.InsertionPoint.at_block_begin(block):
        op = build("concatenate", *block.arguments, axis=-1).owner.opview
        assert op.operation.name == "tensor.concat"
        assert isinstance(op, OPS["concatenate"]) and op.axis == 1 and op.data == list(block.arguments)
        with pytest.raises(RelayError, match=r"concatenate .*: dimension 1: expected equal in all operands, found 3, 4"):
            build("concatenate", *block.arguments, axis=0)


def test_a_tuple_holds_values_of_different_types():
    mod = program("", "%x: tensor<2x3xf32>, %y: tensor<4xi64>")
    block = mod.main.regions[0].blocks[0]
    with mod.context, ir.Location.unknown(), ir.InsertionPoint.at_block_begin(block):
        inner = make_tuple(list(block.arguments))
        outer = make_tuple([inner, block.arguments[1]])
        assert str(outer.type) == "tuple<tuple<tensor<2x3xf32>, tensor<4xi64>>, tensor<4xi64>>"
        field = OPS["tuple_get_item"](OPS["tuple_get_item"](outer, index=0).result, index=1).result
        assert field.type == block.arguments[1].type
    mod.verify()


def test_operations_are_found_again_after_their_operands_changed():
    mod = program('%0 = "relay.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>\n%1 = "relay.exp"(%0) : (tensor<4xf32>) -> tensor<4xf32>')
    block = mod.main.regions[0].blocks[0]
    first, second, _ = (op.operation for op in block.operations)
    found = OperationSet([second])
    second.operands[0] = block.arguments[0]
    assert second in found and first not in found and len(found) == 1
    assert block.operations[1].operation in found
