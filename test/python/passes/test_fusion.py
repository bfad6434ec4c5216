"""Fusion from outside: rules of functions and of patterns, rules turned off, programs in the cache; and what groups say of themselves."""

import os

import numpy as np
import onnx
import pytest
from rewrites import program_of

import relayc
from relayc.dialects.relay import IRModule, RelayError
from relayc.pipelines import PassContext
from relayc.pipelines.driver import compile_cache
from relayc.pipelines.graph import fuse_ops
from relayc.pipelines.graph.fusion import Group, fusion_rule, graph_groups, outside_rules, remove_fusion_rule
from relayc.pipelines.graph.fusion import merge as merging
from relayc.pipelines.graph.fusion import sweep as sweeping
from relayc.pipelines.graph.fusion.shapes import same_shape
from relayc.pipelines.graph.pattern import is_op, wildcard
from relayc.runtime.cache import Cache
from relayc.runtime.cpu import objects

X, W = (np.random.default_rng(seed).standard_normal(shape, np.float32) for seed, shape in enumerate([(4, 8), (8, 8)]))

CHAIN = """
func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %0 = "relay.exp"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = "relay.nn_dense"(%0, %w) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %2 = "relay.nn_softmax"(%1) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = "relay.abs"(%2) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %3 : tensor<4x8xf32>
}
"""
"""exp | dense | softmax abs: the product stands between what could else be one group."""


@pytest.fixture(autouse=True)
def no_rules_are_left():
    """Takes away what a test registers."""
    yield
    for name in outside_rules():
        remove_fusion_rule(name)


def fused(text=CHAIN, **options):
    """The groups of main, each as the names of its operators."""
    mod = IRModule.parse(text)
    with PassContext(**options):
        fuse_ops(mod)
    mod.verify()
    return mod, graph_groups(mod.main.regions[0].blocks[0])


def names(text=CHAIN, **options):
    mod, groups = fused(text, **options)
    assert mod.context is not None  # the groups are read from it
    return [[member.relay_name for member in group.members] for group in groups]


def composites(attribute="composite"):
    """An attribute of each group of CHAIN."""
    mod, groups = fused()
    assert mod.context is not None
    return [getattr(group, attribute) for group in groups]


def is_dense_and_softmax(producer, consumer):
    return producer.root.relay_name == "nn.dense" and consumer.anchor is not None and consumer.anchor.relay_name == "nn.softmax"


def run_chain(**options):
    """What CHAIN computes, and the operators of its kernels."""
    with PassContext(**options):
        module = relayc.compile(IRModule.parse(CHAIN))
    return module["main"](X, W), {kernel.ops for kernel in module.kernels}


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


# ---- functions


def test_a_rule_from_outside_merges_what_it_says_and_the_kernel_is_right():
    fusion_rule("dense-softmax")(is_dense_and_softmax)
    found, kernels = run_chain()
    assert kernels == {("exp",), ("nn.dense", "nn.softmax", "abs")}
    np.testing.assert_allclose(found, softmax(np.exp(X) @ W.T), rtol=1e-5, atol=1e-7)


def test_a_rule_has_a_level():
    fusion_rule("dense-softmax", opt_level=3)(is_dense_and_softmax)
    assert ["nn.dense", "nn.softmax", "abs"] in names(opt_level=3)
    assert ["nn.softmax", "abs"] in names(opt_level=2)
    assert len(names(opt_level=0)) == 4


def test_constraints_hold_for_rules_from_outside():
    fusion_rule("everything")(lambda producer, consumer: True)
    text = """
    func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<2xf32>) {
      %0 = "relay.cumsum"(%x) {axis = 0} : (tensor<8xf32>) -> tensor<8xf32>
      %1 = "relay.cumsum"(%0) {axis = 0} : (tensor<8xf32>) -> tensor<8xf32>
      %2 = "relay.exp"(%1) : (tensor<8xf32>) -> tensor<8xf32>
      %3:2 = "relay.topk"(%2) {k = 2} : (tensor<8xf32>) -> (tensor<2xf32>, tensor<2xi32>)
      return %1, %2, %3#0 : tensor<8xf32>, tensor<8xf32>, tensor<2xf32>
    }
    """
    assert names(text) == [["cumsum", "cumsum"], ["exp"], ["topk"]]
    assert names(text, config={"relay.FuseOps.max_depth": 1}) == [["cumsum"], ["cumsum"], ["exp"], ["topk"]]


def test_what_nothing_reads_is_a_group_of_its_own():
    text = CHAIN.replace("  %2 =", '  %unread = "relay.exp"(%1) : (tensor<4x8xf32>) -> tensor<4x8xf32>\n  %2 =')
    assert names(text) == [["exp"], ["nn.dense"], ["exp"], ["nn.softmax", "abs"]]


def test_a_rule_stands_where_it_was_put():
    asked = []

    def note(name):
        def rule(producer, consumer):
            asked.append((name, producer.root.relay_name))
            return False

        return rule

    fusion_rule("last")(note("last"))
    fusion_rule("second", after="prologue")(note("second"))
    fusion_rule("first", before="second")(note("first"))
    fusion_rule("epilogues", before="epilogue")(note("epilogues"))
    assert names() == [["exp"], ["nn.dense"], ["nn.softmax", "abs"]]
    order = [name for name, producer in asked if producer == "nn.dense"]
    assert order == ["epilogues", "first", "second", "last"]
    assert ("epilogues", "nn.softmax") in asked  # before its group was formed
    assert outside_rules() == ["epilogues", "first", "second", "last"]


def test_a_rule_of_the_same_name_replaces_the_one_before():
    fusion_rule("dense-softmax")(lambda producer, consumer: True)
    fusion_rule("dense-softmax")(lambda producer, consumer: False)
    assert outside_rules() == ["dense-softmax"] and len(names()) == 3


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"name": "epilogue"}, ValueError, "none of elementwise-into-elementwise, epilogue.*; found 'epilogue'"),
        ({"name": "one-consumer"}, ValueError, "found 'one-consumer'"),
        ({"name": "Dense Softmax"}, ValueError, "expected lower-case words joined by dashes"),
        ({"name": "a", "before": "b"}, ValueError, "fusion_rule a: expected before or after one of elementwise-.*, found 'b'"),
        ({"name": "a", "before": "epilogue", "after": "prologue"}, ValueError, "expected before or after, found both"),
        ({"name": "a", "compiler": "b"}, TypeError, "compiler and check are for rules with a pattern"),
        ({"name": "a", "check": lambda match: True}, TypeError, "compiler and check are for rules with a pattern"),
        ({"name": "a", "pattern": wildcard(), "extend": True}, TypeError, "extend is for rules made of functions"),
        ({"name": "a", "pattern": wildcard(), "before": "epilogue"}, ValueError, "one of none, found 'epilogue'"),
    ],
)
def test_wrong_arguments_say_what_was_expected(arguments, error, message):
    with pytest.raises(error, match=message):
        fusion_rule(**arguments)(is_dense_and_softmax)
    assert outside_rules() == []


def test_only_a_function_can_be_decorated():
    with pytest.raises(TypeError, match="expected a function"):
        fusion_rule("a")("text")


def test_what_is_not_registered_cannot_be_removed():
    fusion_rule("a")(is_dense_and_softmax)
    with pytest.raises(ValueError, match="expected one of a, found 'epilogue'"):
        remove_fusion_rule("epilogue")


# ---- turning rules off


def test_rules_are_turned_off_by_name_as_passes_or_in_the_configuration():
    both = [["exp"], ["nn.dense"], ["nn.softmax", "abs"]]
    apart = [["exp"], ["nn.dense"], ["nn.softmax"], ["abs"]]
    assert names() == both
    assert names(disabled_pass=["FuseOps.epilogue"]) == apart
    assert names(config={"relay.FuseOps.disabled_rules": ["epilogue", "prologue"]}) == apart
    assert names(opt_level=0, required_pass=["FuseOps.epilogue"]) == both


def test_rules_from_outside_are_turned_off_too():
    fusion_rule("dense-softmax")(is_dense_and_softmax)
    fusion_rule("absolute", pattern=is_op("abs")(wildcard()))
    off = {"relay.FuseOps.disabled_rules": ["absolute"]}
    assert names(disabled_pass=["FuseOps.dense-softmax"], config=off) == [["exp"], ["nn.dense"], ["nn.softmax", "abs"]]


@pytest.mark.parametrize("options", [{"disabled_pass": ["FuseOps.no"]}, {"config": {"relay.FuseOps.disabled_rules": ["no"]}}])
def test_an_unknown_rule_is_an_error_that_lists_the_known(options):
    fusion_rule("mine")(is_dense_and_softmax)
    with pytest.raises(ValueError, match=r"expected rules out of .*prologue.*mine.*found no$"):
        names(**options)


# ---- patterns


def test_a_pattern_gathers_its_matches_and_other_rules_leave_them():
    fusion_rule("dense-softmax", pattern=is_op("nn.softmax")(is_op("nn.dense")))
    mod, groups = fused()
    assert [group.composite for group in groups] == [None, "dense-softmax", None]
    assert 'composite = "dense-softmax"' in str(mod) and "compiler" not in str(mod)
    found, kernels = run_chain()
    assert kernels == {("exp",), ("nn.dense", "nn.softmax"), ("abs",)}
    np.testing.assert_allclose(found, softmax(np.exp(X) @ W.T), rtol=1e-5, atol=1e-7)


def test_a_match_with_an_operation_that_defines_sizes_is_no_group():
    text = """
    func.func @main(%x: tensor<?xf32, ["m"]>) -> (tensor<?xf32, ["n"]>, tensor<1x?xf32, ["m"]>) {
      %0 = "relay.match_shape"(%x) {shape = ["n"]} : (tensor<?xf32, ["m"]>) -> tensor<?xf32, ["n"]>
      %1 = "relay.exp"(%0) : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
      %2 = "relay.reshape"(%x) {newshape = [1, "m"]} : (tensor<?xf32, ["m"]>) -> tensor<1x?xf32, ["m"]>
      %3 = "relay.abs"(%2) : (tensor<1x?xf32, ["m"]>) -> tensor<1x?xf32, ["m"]>
      return %1, %3 : tensor<?xf32, ["n"]>, tensor<1x?xf32, ["m"]>
    }
    """
    fusion_rule("matched", pattern=is_op("exp")(is_op("match_shape")))
    fusion_rule("reshaped", pattern=is_op("abs")(is_op("reshape")))
    mod, groups = fused(text)
    assert [group.composite for group in groups] == [None, "reshaped"] and "match_shape" in str(mod)


def test_a_rule_may_extend_what_a_pattern_gathered():
    fusion_rule("dense-softmax", pattern=is_op("nn.softmax")(is_op("nn.dense")))
    fusion_rule("abs-behind", extend=True)(lambda producer, consumer: producer.root.relay_name == "nn.softmax")
    assert names() == [["exp"], ["nn.dense", "nn.softmax", "abs"]]
    assert composites() == [None, "dense-softmax"]


def test_two_gathered_groups_are_never_merged():
    for name in ("nn.dense", "nn.softmax"):
        fusion_rule(name.removeprefix("nn."), pattern=is_op(name))
    fusion_rule("everything", extend=True)(lambda producer, consumer: True)
    assert names() == [["exp", "nn.dense"], ["nn.softmax", "abs"]]


def test_a_check_chooses_matches_and_the_first_pattern_wins():
    fusion_rule("second", pattern=is_op("nn.softmax")(is_op("nn.dense")))
    fusion_rule("first", before="second", pattern=is_op("nn.softmax")(wildcard()), check=lambda match: match.root.type.rank == 2)
    fusion_rule("never", before="first", pattern=is_op("nn.softmax")(wildcard()), check=lambda match: False)
    assert composites() == [None, None, "first", None]


def test_a_group_for_another_compiler_says_so_and_is_not_lowered():
    fusion_rule("dense-softmax", pattern=is_op("nn.softmax")(is_op("nn.dense")), compiler="other")
    assert composites("compiler") == [None, "other", None]
    with pytest.raises(RelayError, match="other"):
        run_chain()


# ---- the cache


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RELAYC_CACHE", "1")
    monkeypatch.setenv("RELAYC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(compile_cache, "_sources_are_loaded", lambda: True)  # also while someone edits them
    return tmp_path / "cache"


@pytest.mark.skipif(not objects.can_load(), reason="objects are loaded on Linux on x86-64 only")
def test_programs_with_rules_from_outside_bypass_the_cache(cache):
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> main (float[4, 8] x) => (float[4, 8] y) { a = Softmax (x) y = Abs (a) }'
    ).SerializeToString()
    relayc.compile(model)
    kept = len(os.listdir(cache))
    assert list(relayc.compile(model).stats) == ["cache"]
    fusion_rule("mine")(is_dense_and_softmax)
    assert list(relayc.compile(model).stats) != ["cache"]
    assert len(os.listdir(cache)) == kept
    remove_fusion_rule("mine")
    assert list(relayc.compile(model).stats) == ["cache"]
    with PassContext(config={"relay.FuseOps.disabled_rules": ["epilogue"]}):
        apart = relayc.compile(model)
        assert {kernel.ops for kernel in apart.kernels} == {("nn.softmax",), ("abs",)} and list(apart.stats) != ["cache"]
        assert list(relayc.compile(model).stats) == ["cache"]
    assert Cache.default() is not None


# ---- groups

PRODUCT = "x:4x8 w:8x8"
EXPERTS = "e:7x5x4 i:3xi64 x:3x8x4 y:3x9x4 b:3x5x4 c:7x8x5 d:3x5x9 j:4xi64 k:2x3x5xi64 l:3x3x5x4xi64"


@pytest.mark.parametrize(
    ("inputs", "text", "expected"),
    [
        ("x:4x8", "nn_softmax(exp(x))", ["exp nn.softmax"]),
        ("x:2x3 z:1x2x3", "exp(x) + z", ["exp add"]),
        ("x:1x3 z:2x3", "exp(x) + z", ["exp", "add"]),
        ("x:4x8 c:8", "(x + (y := exp(c))) + reverse(y, axis=0)", ["exp", "reverse add add"]),
        ("x:2x3 y:2x3", "concatenate(exp(x), exp(y), axis=0)", ["exp", "exp", "concatenate"]),
        ("x:2x3 y:2x3", "concatenate(exp(x), y, axis=0)", ["exp concatenate"]),
        ("x:4 b:4", "nn_layer_norm((y := exp(x)) * 2.0, y, b)", ["exp", "multiply nn.layer_norm"]),
        ("x:4x8", "nn_softmax((y := exp(x))) + y", ["exp", "nn.softmax add"]),
        ("x:4x8", "nn_softmax((y := exp(x)) * 2.0) + y", ["exp", "multiply nn.softmax add"]),
        (PRODUCT, "nn_dense((y := exp(x)), w) + y", ["exp", "nn.dense add"]),
        (PRODUCT, "nn_dense(x, w) + exp(x)", ["nn.dense exp add"]),
        (f"{PRODUCT} t:3x8 i:i64", "nn_dense(x, w) + take(t, i, axis=0)", ["nn.dense take add"]),
        ("t:9x8", "sum(exp(t), axis=(1,))", ["exp sum"]),
        ("x:1x2x4x4xu8", "nn_max_pool2d(cast(x, dtype='float32'), pool_size=(2, 2))", ["cast nn.max_pool2d"]),
        ("x:1x2xhx4xu8", "nn_max_pool2d(cast(x, dtype='float32'), pool_size=(2, 2))", ["cast", "nn.max_pool2d"]),
        (EXPERTS, "nn_batch_matmul(x, take(e, i, axis=0))", ["take nn.batch_matmul"]),
        (EXPERTS, "nn_batch_matmul(y, take(e, i, axis=0))", ["take", "nn.batch_matmul"]),
        (EXPERTS, "nn_batch_matmul(x, take(d, j, axis=2))", ["take", "nn.batch_matmul"]),
        (EXPERTS, "nn_batch_matmul(x, gather_nd(e, k))", ["gather_nd nn.batch_matmul"]),
        (EXPERTS, "nn_batch_matmul(x, gather_nd(e, l))", ["gather_nd", "nn.batch_matmul"]),
        (EXPERTS, "nn_batch_matmul(x, b) + take(c, i, axis=0)", ["take", "nn.batch_matmul add"]),
    ],
)
def test_what_is_in_a_group(inputs, text, expected):
    assert names(str(program_of(inputs, text))) == list(map(str.split, expected))


@pytest.mark.parametrize(("text", "expected"), [("tanh(exp(x) + x)", [["exp", "add", "tanh"]]), ("exp(x) + y", [["exp"], ["add"]])])
def test_an_operand_of_a_group_counts_once(text, expected):
    assert names(str(program_of("x:4 y:4", text)), config={"relay.FuseOps.max_operands": 1}) == expected


def test_a_group_that_gathers_with_any_operator_stays_as_it_is():
    text = """
    func.func @main(%t: tensor<9x8xf32>, %i: tensor<4xi64>, %j: tensor<i64>, %x: tensor<4x8xf32>, %w: tensor<8x8xf32>)
        -> (tensor<4xf32>, tensor<4x8xf32>) {
      %0 = "relay.fused"() ({
        %1 = "relay.take"(%t, %i) {axis = 0 : i64} : (tensor<9x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
        %2 = "relay.exp"(%1) : (tensor<4x8xf32>) -> tensor<4x8xf32>
        "relay.yield"(%2) : (tensor<4x8xf32>) -> ()
      }) : () -> tensor<4x8xf32>
      %3 = "relay.sum"(%0) {axis = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
      %4 = "relay.fused"() ({
        %5 = "relay.take"(%t, %j) {axis = 0 : i64} : (tensor<9x8xf32>, tensor<i64>) -> tensor<8xf32>
        %6 = "relay.reverse"(%5) {axis = 0 : i64} : (tensor<8xf32>) -> tensor<8xf32>
        "relay.yield"(%6) : (tensor<8xf32>) -> ()
      }) : () -> tensor<8xf32>
      %7 = "relay.nn_dense"(%x, %w) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %8 = "relay.add"(%7, %4) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
      return %3, %8 : tensor<4xf32>, tensor<4x8xf32>
    }
    """
    assert names(text) == [["take", "exp"], ["sum"], ["take", "reverse"], ["nn.dense", "add"]]


def facts(group):
    """All that a group says of itself."""
    said = (
        "members",
        "root",
        "pattern",
        "anchor",
        "prologue",
        "captured",
        "max_operands",
        "has_one_result",
        "type",
        "size",
        "yielded",
        "users",
        "composite",
    )
    return {name: getattr(group, name) for name in said}


def test_groups_that_are_there_take_part():
    text = """
    func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
      %0 = "relay.fused"() ({
        %c = "relay.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
        %1 = "relay.multiply"(%x, %c) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
        "relay.yield"(%1) : (tensor<4xf32>) -> ()
      }) : () -> tensor<4xf32>
      %2 = "relay.exp"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      %3 = "relay.fused"() ({
        "relay.yield"(%y) : (tensor<4xf32>) -> ()
      }) : () -> tensor<4xf32>
      %4 = "relay.add"(%2, %3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      return %4 : tensor<4xf32>
    }
    """
    assert names(text) == [[], ["multiply", "exp", "add"]]
    mod, _ = fused(text)
    once = str(mod)
    fuse_ops(mod)
    assert str(mod) == once


def test_unknown_sizes_are_equal_where_operators_keep_them():
    mod = IRModule.parse("""
func.func @main(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>, %z: tensor<?xf32>) -> tensor<?x?xf32> {
  %0 = "relay.exp"(%x) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %1 = "relay.abs"(%0) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %2 = "relay.add"(%1, %0) : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  %3 = "relay.add"(%1, %y) : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  %4 = "relay.add"(%1, %z) : (tensor<?x?xf32>, tensor<?xf32>) -> tensor<?x?xf32>
  return %4 : tensor<?x?xf32>
}""")
    block = mod.main.regions[0].blocks[0]
    x, y, z = block.arguments
    values = [op.operation.results[0] for op in block.operations if len(op.operation.results)]
    assert [same_shape(x, value) for value in values] == [True, True, True, False, False]
    assert [same_shape(value, x) for value in (y, z)] == [False, False]


@pytest.mark.parametrize(("count", "is_same"), [(198, True), (199, False), (260, False)])
def test_unknown_sizes_are_followed_through_so_many_operators(count, is_same):
    lines = [f'%{i + 1} = "relay.exp"(%{i}) : (tensor<?xf32>) -> tensor<?xf32>' for i in range(count)]
    mod = IRModule.parse(
        f"func.func @main(%0: tensor<?xf32>) -> tensor<?xf32> {{\n{chr(10).join(lines)}\nreturn %{count} : tensor<?xf32>\n}}"
    )
    block = mod.main.regions[0].blocks[0]
    assert same_shape(block.arguments[0], block.operations[count - 1].operation.results[0]) is is_same


@pytest.mark.parametrize("model", ["segformer", "unet", "whisper_encoder"])
def test_what_a_sweep_knows_of_a_group_is_what_the_ir_says(model, monkeypatch):
    merges = []

    def checked(producer, consumer):
        merged = merging.merge(producer, consumer)
        assert facts(merged) == facts(Group(merged.op))
        merges.append(merged)
        return merged

    monkeypatch.setattr(sweeping, "merge", checked)
    path = os.path.join(os.path.dirname(relayc.__file__), "test", "models", f"{model}.onnx")
    relayc.compile(path, stop_after="relay").verify()
    assert len(merges) > 20
