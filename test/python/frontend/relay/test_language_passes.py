"""Passes and analyses that look at one kind of expression: gradient cells, joins of many tensors, counts of multiplications."""

import numpy as np
import pytest
from oracle import values

import relayc
from relayc import relay

transform = relay.transform


def run(mod, *args):
    return relay.create_executor("graph", mod).evaluate()(*args)


def operators(expr):
    found = []
    relay.analysis.post_order_visit(expr, lambda node: found.append(node) if isinstance(node, relay.Call) else None)
    return [node.op.name for node in found if isinstance(node.op, relay.Op)]


def test_zeros_are_not_multiplied_and_types_stay():
    x, pair = relay.var("x", shape=(2, 3)), relay.var("p", relay.TupleType([relay.TensorType((2, 3))] * 2))
    ones = relay.ones_like(x) * (x + relay.TupleGetItem(pair, 0))
    body = relay.Tuple([ones + relay.zeros_like(x), relay.exp(x) * relay.zeros((2, 3), "float32"), relay.op.concatenate(pair, 0)])
    mod = transform.InferType()(relay.IRModule.from_expr(relay.Function([x, pair], body)))
    found = transform.LazyGradientInit()(mod)
    assert found["main"].checked_type == mod["main"].checked_type
    data = [values((2, 3)) for _ in range(3)]
    for a, b in zip(run(found, data[0], data[1:]), run(mod, data[0], data[1:]), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy())
    left = [transform.PartialEvaluate(), transform.InferType(), transform.DeadCodeElimination(inline_once=True)]
    assert "multiply" not in operators(transform.Sequential(left)(found)["main"])


def test_cells_go_through_functions_and_branches():
    text = """#[version = "0.0.5"]
    def @scale(%x: Tensor[(2), float32]) -> Tensor[(2), float32] { multiply(%x, 2f) }
    def @main(%c: bool, %x: Tensor[(2), float32]) -> Tensor[(2), float32] {
      let %f = fn (%y: Tensor[(2), float32]) -> Tensor[(2), float32] { if (%c) { add(@scale(%y), %x) } else { zeros_like(%x) } };
      add(%f(%x), ones_like(%x)) }"""
    mod = relay.parse(text)
    found, x = transform.LazyGradientInit()(mod), values((2,))
    for c in (True, False):
        np.testing.assert_allclose(run(found, c, x).numpy(), run(mod, c, x).numpy())
    with pytest.raises(relayc.RelayError, match="LazyGradientInit: expected tensors and tuples of them, found A"):
        transform.LazyGradientInit()(relay.Prelude().mod)
    boxed = "type Box { Put(float32) }\ndef @main(%x: float32) -> float32 { match (Put(%x)) { Put(%y) => %y } }"
    with pytest.raises(relayc.RelayError, match="LazyGradientInit: expected no data types, found"):
        transform.LazyGradientInit()(relay.parse(boxed))
    with pytest.raises(relayc.RelayError, match=r"LazyGradientInit: expected tensors and tuples of them, found ref\(float32\)"):
        transform.LazyGradientInit()(relay.parse("def @main(%r: ref(float32)) -> ref(float32) { %r }"))
    with pytest.raises(relayc.RelayError, match=r"LazyGradientInit: expected tensors and tuples of them, found ref\(float32\)"):
        transform.LazyGradientInit()(relay.parse("def @main(%x: float32) { ref(%x) }"))


def test_macs_are_counted_by_terms_and_results():
    x, w = relay.var("x", shape=(1, 8, 6, 6, 6)), relay.var("w", shape=(4, 2, 3, 3, 3))
    conv = relay.nn.conv3d(x, w, groups=4, channels=4, kernel_size=(3, 3, 3))
    flat = relay.nn.batch_flatten(conv)
    product = relay.nn.matmul(relay.var("a", shape=(7, 5)), relay.var("b", shape=(7, 9)), transpose_a=True)
    typed = transform.InferType()(relay.IRModule.from_expr(relay.Tuple([relay.nn.dense(flat, relay.var("v", shape=(10, 256))), product])))
    assert relay.analysis.get_total_mac_number(typed["main"]) == 4 * 4**3 * 27 * 2 + 256 * 10 + 5 * 7 * 9
    late = relay.Function([x], relay.nn.dense(relay.var("d", shape=(relay.Any(), 2)), relay.var("w", shape=(3, 2))))
    with pytest.raises(relayc.RelayError, match="expected sizes that are known, found"):
        relay.analysis.get_total_mac_number(transform.InferType()(relay.IRModule.from_expr(late.body))["main"])


def test_many_tensors_are_joined_in_steps():
    parts = [relay.var(f"x{i}", shape=(i + 1, 2)) for i in range(10)]
    mod = relay.IRModule.from_expr(relay.Function(parts, relay.op.concatenate(parts, 0)))
    for limit, joins in ((0, 1), (11, 1), (10, 2), (4, 5)):
        found = transform.SplitArgs(limit)(mod)
        assert operators(found["main"]).count("concatenate") == joins
        assert operators(found["main"]).count("annotation.stop_fusion") == (joins if joins > 1 else 0)
    data = [values((i + 1, 2)) for i in range(10)]
    np.testing.assert_array_equal(run(found, *data).numpy(), np.concatenate(data))


def test_joins_in_steps_of_tensors_of_unknown_sizes():
    """Each takes more arguments than there are: no step has fewer than two tensors."""
    parts = [relay.var(f"x{i}", shape=(relay.Any(), 2)) for i in range(3)]
    found = transform.SplitArgs(2)(relay.IRModule.from_expr(relay.Function(parts, relay.op.concatenate(parts, 0))))
    assert operators(found["main"]).count("concatenate") == 2
    data = [values((i + 1, 2)) for i in range(3)]
    np.testing.assert_array_equal(run(found, *data).numpy(), np.concatenate(data))


KERNEL = """
    def @main(%x: Tensor[(2), float32], %y: Tensor[(2), float32]) {
      let %f = fn (%p: Tensor[(2), float32], %q: Tensor[(2), float32], Primitive=1) { nn.relu(add(%p, %q)) };
      add(%f(%x, %y), %f(%y, %y))
    }"""


@pytest.mark.parametrize("name", ["ToANormalForm", "ToBasicBlockNormalForm", "PartialEvaluate"])
def test_kernels_stay_as_they_are(name):
    found = getattr(transform, name)()(relay.parse(KERNEL))
    x, y = values((2,)), values((2,), seed=1)
    np.testing.assert_allclose(run(found, x, y).numpy(), np.maximum(x + y, 0) + np.maximum(y + y, 0), rtol=1e-6)


def test_a_function_that_names_itself_does_not_take_the_place_of_its_variable():
    text = """def @main(%n: int32) -> int32 {
      let %sum = fn (%i: int32, %a: int32) -> int32 { if (%i < %n) { %sum(%i + 1, %a + %i) } else { %a } };
      %sum(0, 0) }"""
    found = transform.DeadCodeElimination(inline_once=True)(relay.parse(text))
    assert isinstance(found["main"].body, relay.Let)
    assert run(found, 5) == 10


def test_variables_end_after_their_last_use():
    text = """#[version = "0.0.5"]
    def @main(%c: bool, %x: float32) -> float32 {
      let %alias = %x;
      let %y = %alias * 2f;
      let %z = if (%c) { let %a = %y + %x; let %b = %a * %a; %b } else { %y };
      let %w = fn () -> float32 { %z };
      %w() }"""
    found = transform.ManifestLifetimes()(relay.parse(text))["main"]
    ends, body = [], found.body
    while isinstance(body, relay.Let):
        branch = body.value.true_branch if isinstance(body.value, relay.If) else None
        while isinstance(branch, relay.Let):
            ends.append(branch.value.args[0].name_hint if branch.value.op.name == "memory.kill" else f"let {branch.var.name_hint}")
            branch = branch.body
        is_end = isinstance(body.value, relay.Call) and body.value.op.name == "memory.kill"
        ends.append(body.value.args[0].name_hint if is_end else f"let {body.var.name_hint}")
        body = body.body
    # x and y end in the branch that uses them last, c after the if; a function keeps what it uses.
    assert ends == ["let y", "let a", "y", "x", "let b", "a", "let z", "c", "let w", "z"]


def test_variables_end_in_the_clauses_that_use_them_last():
    text = """#[version = "0.0.5"]
    type Box { Put(float32), Empty }
    def @main(%b: Box, %x: float32) -> float32 {
      let %y = match (%b) { Put(%v) => { let %a = %v + %x; let %c = %a * %a; %c }, Empty => { let %d = %x * 3f; %d } };
      %y }"""
    match = transform.ManifestLifetimes()(relay.parse(text))["main"].body.value
    ends = []
    for clause in match.clauses:
        body = clause.rhs
        while isinstance(body, relay.Let):
            is_end = body.value.op.name == "memory.kill"
            ends.append(body.value.args[0].name_hint if is_end else f"let {body.var.name_hint}")
            body = body.body
    assert ends == ["let a", "v", "x", "let c", "a", "let d", "x"]


def test_operators_of_memory_have_types():
    text = """#[version = "0.0.5"]
    extern type Storage
    def @main(%n: int64, %s: int64) {
      let %m = memory.alloc_storage(%n, %s, %n);
      memory.alloc_tensor(%m, %n, %s, const_shape=[3, 2], dtype="float16") }"""
    mod = relay.parse(text)
    assert mod["main"].ret_type == relay.TensorType((3, 2), "float16") and str(mod["main"].body.var.type_annotation) == "Storage"
    relay.assert_structural_equal(relay.parse(mod.astext()), mod)
    with pytest.raises(relayc.RelayError, match="expected an operator that can be compiled, found one that is only registered"):
        relay.create_executor("graph", relay.parse('#[version = "0.0.5"]\ndef @main(%x: float32) { memory.kill(%x) }')).evaluate()(1.0)


def test_memory_that_nothing_uses_is_not_allocated():
    text = """#[version = "0.0.5"]
    extern type Storage
    def @main(%n: int64, %s: int64) {
      let %unused = memory.alloc_storage(%n, %s, %n);
      let %m = memory.alloc_storage(%n, %s, %n);
      let %end = memory.kill(%m);
      0 }"""
    assert operators(transform.DeadCodeElimination(inline_once=True)(relay.parse(text))["main"]) == ["memory.alloc_storage", "memory.kill"]
