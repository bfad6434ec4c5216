"""What is known of Relay programs without running them; relations of types; operators that programs register."""

import contextlib

import numpy as np
import pytest

from relayc import relay
from relayc.dialects.relay.errors import RelayError
from relayc.frontend.relay.analysis import (
    Feature,
    all_type_vars,
    all_vars,
    check_basic_block_normal_form,
    check_kind,
    count_layers,
    detect_feature,
    extract_intermdeiate_expr,
    list_fake_quantized_op_freqs,
    list_op_freqs,
)
from relayc.frontend.relay.inference import RELATIONS, TypeSolver
from relayc.frontend.relay.loops import loop_form
from relayc.frontend.relay.op import registered, signature

X, Y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(2, 3))
COND = relay.var("c", shape=(), dtype="bool")


def program(*params, body):
    return relay.IRModule.from_expr(relay.Function(list(params), body))


# ---- variables -----------------------------------------------------------------------------------------------------------------------


def test_variables_of_patterns_come_before_what_uses_them():
    mod = relay.parse_module('#[version = "0.0.5"]\ntype List[A] { Cons(A, List[A]), Nil, }')
    _, cons, nil = mod.get_type("List")
    a, b, c = map(relay.Var, "abc")
    pattern = relay.PatternConstructor(cons, [relay.PatternVar(a), relay.PatternVar(b)])
    clauses = [relay.Clause(relay.PatternConstructor(nil), c), relay.Clause(pattern, a)]
    match = relay.Match(nil(), clauses)
    assert all_vars(match) == [c, a, b]


def test_type_variables_that_are_bound_come_first():
    a, b, c = map(relay.TypeVar, "abc")
    assert [v.name_hint for v in all_type_vars(relay.FuncType([b], c, [a]))] == ["a", "b", "c"]


# ---- kinds ---------------------------------------------------------------------------------------------------------------------------


def test_kinds_of_types():
    size, plain = relay.TypeVar("n", relay.Kind.ShapeVar), relay.TypeVar("t")
    tensor = relay.TensorType((1, 2))
    assert check_kind(size) == relay.Kind.ShapeVar and check_kind(plain) == relay.Kind.Type
    relation = relay.TypeRelation(RELATIONS["Identity"], [tensor, plain], 1)
    assert check_kind(relation) == relay.Kind.Constraint
    function = relay.FuncType([relay.TupleType([plain, tensor])], relay.RefType(tensor), [plain], [relation])
    assert check_kind(function) == relay.Kind.Type


@pytest.mark.parametrize(
    "wrong",
    [
        relay.TupleType([relay.TypeVar("n", relay.Kind.ShapeVar)]),
        relay.RefType(relay.TypeVar("n", relay.Kind.BaseType)),
        relay.FuncType([], relay.TypeVar("n", relay.Kind.Shape)),
        relay.FuncType([], relay.TupleType([]), [], [relay.TupleType([])]),
        relay.TypeCall(relay.GlobalTypeVar("T", relay.Kind.Type), []),
        relay.TypeCall(relay.GlobalTypeVar("T"), []),
    ],
)
def test_kinds_that_do_not_fit(wrong):
    with pytest.raises(RelayError, match="expected"):
        check_kind(wrong)


def test_data_types_have_as_many_arguments_as_parameters():
    mod = relay.parse_module('#[version = "0.0.5"]\ntype List[A] { Cons(A, List[A]), Nil, }')
    name = mod.get_global_type_var("List")
    assert check_kind(relay.TypeCall(name, [relay.TensorType((1,))]), mod) == relay.Kind.Type
    with pytest.raises(RelayError, match="expected 1 argument"):
        check_kind(relay.TypeCall(name, []), mod)
    data = mod.type_definitions[name]
    assert check_kind(data, mod) == relay.Kind.TypeData
    with pytest.raises(RelayError, match="type data T: expected a name of the kind AdtHandle, found Type"):
        check_kind(relay.TypeData(relay.GlobalTypeVar("T", relay.Kind.Type), [], []))
    with pytest.raises(RelayError, match="expected parts of the kind Type, found n of the kind ShapeVar"):
        check_kind(relay.TypeData(name, [], [relay.Constructor("C", [relay.TypeVar("n", relay.Kind.ShapeVar)], name)]))


# ---- what programs have --------------------------------------------------------------------------------------------------------------


def test_features():
    v = relay.Var("v")
    assert detect_feature(relay.Let(v, X + Y, v)) == {Feature.fVar, Feature.fCall, Feature.fOp, Feature.fLet}
    shared = X + Y
    assert Feature.fGraph in detect_feature(shared * shared) and Feature.fGraph not in detect_feature(X * X)
    loop = relay.Let(v, relay.Function([X], v(X)), v)
    assert detect_feature(loop) == {Feature.fVar, Feature.fCall, Feature.fFunction, Feature.fLet, Feature.fLetRec}
    mod = program(X, Y, COND, body=relay.If(COND, relay.Tuple([X])[0], Y))
    assert {Feature.fIf, Feature.fFunction} <= detect_feature(mod)


def test_numbers_of_operators_and_layers():
    w = relay.var("w", shape=(3, 3))
    a, b = relay.nn.dense(X, w), relay.nn.dense(relay.nn.dense(X, w), w)
    mod = program(X, w, body=relay.nn.relu(a + b))
    assert list_op_freqs(mod) == {"nn.dense": 3, "add": 1, "nn.relu": 1}
    assert count_layers(mod, ["nn.dense"]) == 2 and count_layers(mod, ["nn.dense", "nn.relu"]) == 3


def test_operators_between_quantized_numbers():
    scale, zero = relay.const(0.5), relay.const(0)
    q = relay.var("q", shape=(4, 4), dtype="int8")
    inside = relay.nn.relu(relay.transpose(relay.qnn.op.dequantize(q, scale, zero)))
    mod = program(q, body=relay.tanh(relay.qnn.op.dequantize(relay.qnn.op.quantize(inside, scale, zero), scale, zero)))
    assert list_fake_quantized_op_freqs(mod) == {"nn.relu": 1, "transpose": 1}
    # What begins at a real number is no such region.
    assert list_fake_quantized_op_freqs(program(X, body=relay.qnn.op.quantize(relay.exp(X), scale, zero))) == {}
    # Nor is what begins at the result of a function; fields of tuples are followed.
    called = relay.Function([X], X)(relay.qnn.op.dequantize(q, scale, zero))
    assert list_fake_quantized_op_freqs(program(q, body=relay.qnn.op.quantize(relay.exp(called), scale, zero))) == {}
    field = relay.TupleGetItem(relay.Tuple([relay.qnn.op.dequantize(q, scale, zero)]), 0)
    assert list_fake_quantized_op_freqs(program(q, body=relay.qnn.op.quantize(relay.exp(field), scale, zero))) == {"exp": 1}


def test_expressions_by_the_numbers_of_the_text():
    total = X + Y
    mod = program(X, Y, body=relay.tanh(total) * total)
    for number, expected in enumerate((total, relay.tanh(total), relay.tanh(total) * total)):
        relay.assert_structural_equal(extract_intermdeiate_expr(mod, number)["main"].body, expected, True)
    with pytest.raises(ValueError, match="expected 0 to 2, found 3"):
        extract_intermdeiate_expr(mod, 3)


# ---- basic blocks --------------------------------------------------------------------------------------------------------------------


def test_what_branches_share_is_bound_around_them():
    total, v = X + Y, relay.var("v")
    with pytest.raises(RelayError, match="several scopes share"):
        check_basic_block_normal_form(relay.If(COND, total, relay.tanh(total)))
    check_basic_block_normal_form(relay.Let(v, total, relay.If(COND, v, relay.tanh(v))))
    check_basic_block_normal_form(total * relay.If(COND, total, relay.tanh(total)))  # it is computed before the branch


def test_functions_have_blocks_of_their_own():
    total, z = X + X, relay.var("z", shape=(2, 3))
    inner = relay.Function([z], total + z)
    with pytest.raises(RelayError, match="several scopes share"):
        check_basic_block_normal_form(relay.Function([X, Y], inner(Y) - total))


def test_clauses_have_blocks_of_their_own():
    a, b, total = relay.Var("a"), relay.Var("b"), X + Y
    clauses = [relay.Clause(relay.PatternTuple([relay.PatternVar(a), relay.PatternVar(b)]), a + total)]
    check_basic_block_normal_form(relay.Match(relay.Tuple([X, Y]), clauses))
    check_basic_block_normal_form(relay.Match(relay.Tuple([total, Y]), clauses))  # it is computed before the match
    with pytest.raises(RelayError, match="several scopes share"):
        check_basic_block_normal_form(relay.Match(X, [*clauses, relay.Clause(relay.PatternWildcard(), total)]))


# ---- relations and registered operators ----------------------------------------------------------------------------------------------


def test_relations_are_solved_forwards_and_backwards():
    solver, found, hidden = TypeSolver(), relay.IncompleteType(), relay.IncompleteType()
    solver.add_constraint(relay.TypeRelation(RELATIONS["Broadcast"], [relay.TensorType((10, 20)), hidden, found], 2))
    assert not solver.solve()
    solver.add_constraint(relay.TypeRelation(RELATIONS["Identity"], [hidden, relay.TensorType((3, 1, 1))], 1))
    assert solver.solve() and solver.resolve(found) == relay.TensorType((3, 10, 20))
    with pytest.raises(relay.TypeInferenceError):
        solver.unify(found, relay.TensorType((3,)))
    solver.add_constraint(relay.TypeRelation(lambda types, attrs: None, [relay.TensorType((3,)), relay.IncompleteType()], 1))
    assert not solver.solve()


def test_relations_read_types_of_which_all_is_known():
    solver, part, found = TypeSolver(), relay.IncompleteType(), relay.IncompleteType()
    pair = relay.TupleType([relay.TensorType((2, 3)), part])
    solver.add_constraint(relay.TypeRelation(lambda types, attrs: types[0].fields[1], [pair, found], 1))
    assert not solver.solve() and solver.resolve(found) is found
    solver.unify(part, relay.TensorType((7,)))
    assert solver.solve() and solver.resolve(found) == relay.TensorType((7,))


def test_a_function_of_any_types_is_one_of_some():
    var, tensor = relay.TypeVar("a"), relay.TensorType((2, 3))
    any_, some = relay.FuncType([var], var, [var]), relay.FuncType([tensor], tensor)
    assert TypeSolver().unify(any_, some) == TypeSolver().unify(some, any_) == some


def test_types_that_are_not_one():
    solver, part = TypeSolver(), relay.IncompleteType()
    with pytest.raises(relay.TypeInferenceError, match="expected a type that is no part of itself"):
        solver.unify(part, relay.TupleType([relay.TensorType((2, 3)), part]))
    with pytest.raises(relay.TypeInferenceError, match=r"expected the type Tensor\[\(2, 3\), float32\], found Tensor\[\(2, 4\), float32\]"):
        solver.unify(relay.TensorType((2, 3)), relay.TensorType((2, 4)))


def test_calls_in_arguments_of_the_last_call_are_no_loop():
    """As many expressions have the function in them as there are results."""
    f, x = relay.Var("f"), relay.var("x", shape=())
    for step, is_loop in ((relay.If(COND, f(x), f(x + x)), True), (relay.If(COND, f(f(x)), x), False)):
        for branches in ((step, x), (x, step)):
            form = loop_form(relay.Function([x], relay.If(COND, *branches)), f.vid)
            assert (form is not None) == is_loop and (form is None or form.goes_on == (branches[0] is step))


def test_operators_that_programs_register_have_types():
    registered.register("test.same", "an operator")
    try:
        op = relay.op.get("test.same")
        op.set_num_inputs(2)
        op.add_argument("data", "Tensor", "")
        op.set_support_level(3)
        op.set_attrs_type_key("test.Attrs")
        assert op.support_level == 3 and registered.REGISTERED["test.same"].attrs_type_key == "test.Attrs"
        with pytest.raises(RelayError, match=r"test\.same: expected a type by its relation, found None"):
            relay.transform.InferTypeLocal(relay.Call(op, [X, X]))
        op.add_type_rel("Broadcast")
        registered.register_pattern("test.same", 1)
        assert op.num_inputs == 2 and op.get_attr("TOpPattern") == 1 and op.get_attr("none") is None
        op.reset_attr("TOpPattern")
        assert op.get_attr("TOpPattern") is None
        call = relay.Call(op, [X, relay.var("b", shape=(3,))])
        assert relay.transform.InferTypeLocal(call) == relay.TensorType((2, 3))
        found = signature("test.same")
        assert (found.operands, found.is_variadic, found.attrs) == (("data", "data_1"), False, {})
        with pytest.raises(RelayError, match="only registered"):
            relay.create_executor("graph").evaluate(relay.Function([X, Y], relay.Call(op, [X, Y])))
        with pytest.raises(RelayError, match="registered before"):
            registered.register("test.same")
        op.add_type_rel("own", lambda types, attrs: relay.TupleType(types))
        assert relay.transform.InferTypeLocal(relay.Call(op, [X, Y])) == relay.TupleType([relay.TensorType((2, 3))] * 2)
    finally:
        del registered.REGISTERED["test.same"]


def test_operators_of_relay_have_attributes():
    assert relay.op.get("exp").get_attr("TOpPattern") == 0 and relay.op.get("exp").num_inputs == 1
    assert registered.register_op_attr("exp", "test.key")(len) is len
    assert relay.op.get("exp").get_attr("test.key") is len
    relay.op.get("exp").reset_attr("test.key")
    with pytest.raises(ValueError, match="found one of Relay"):
        relay.op.get("exp").set_num_inputs(2)


@pytest.mark.parametrize(
    ("clauses", "missing"),
    [
        ("_ => 1", []),
        ("", ["_"]),
        ("(Cons(_, Cons(_, %l)), _) => 1", ["(Cons(_, Nil), _)", "(Nil, _)"]),
        ("(Cons(_, Nil), None) => 1, (Nil, _) => 2", ["(Cons(_, Cons(_, _)), _)", "(Cons(_, Nil), Some(_))"]),
        ("(Cons(_, _), %o) => 1, (%l, Some(_)) => 2, (Nil, None) => 3", []),
    ],
)
def test_unmatched_cases(clauses, missing):
    text = f"def @main(%l: List[int32], %o: Option[int32]) -> int32 {{ match? ((%l, %o)) {{ {clauses} }} }}"
    module = relay.parse(text, init_module=relay.Prelude().mod)
    assert list(map(str, relay.analysis.unmatched_cases(module["main"].body, module))) == missing
    if clauses:
        with pytest.raises(RelayError, match="expected a module that defines") if "Cons" in clauses else contextlib.nullcontext():
            relay.analysis.unmatched_cases(module["main"].body)
        with pytest.raises(RelayError, match=r"(Cons|Nil|Some|None): no type") if "Cons" in clauses else contextlib.nullcontext():
            relay.analysis.unmatched_cases(module["main"].body, relay.IRModule())


def test_call_graph():
    module = relay.parse("""
    def @f(%x: int32) -> int32 { if (%x == 0) { 1 } else { @f(%x - 1) + @g(%x) } }
    def @g(%x: int32) -> int32 { %x }
    def @main(%x: int32) -> int32 { @f(@g(%x)) + @g(2) }
    """)
    graph = relay.analysis.CallGraph(module)
    assert [graph.ref_count(name) for name in ("f", "g", "main")] == [2, 3, 0]
    assert [graph.global_call_count(name) for name in ("f", "g", "main")] == [2, 0, 3]
    assert graph.is_recursive("f") and not graph.is_recursive(module.get_global_var("main"))
    assert graph.print_var("main") == "@main: #refs = 0\n  @g: 2\n  @f: 1\n" and graph.print_var("g") in str(graph)
    with pytest.raises(ValueError, match="no function @h"):
        graph.ref_count("h")


def test_modules_are_equal_where_their_functions_are():
    module, other = (relay.parse(f"type B {{ Box(int32) }} def @main(%x: int32) {{ %x + {n} }}") for n in (1, 2))
    assert not relay.structural_equal(module, other) and relay.structural_hash(module) != relay.structural_hash(other)
    assert relay.structural_equal(module, relay.parse(module.astext()))


def test_partitions_are_observed():
    x, y = (relay.var(name, shape=(2, 3)) for name in "xy")
    a, b = (relay.var(name, shape=(2, 3)) for name in "ab")
    pair, single = (relay.GlobalVar(name) for name in ("pair", "single"))
    mod = relay.IRModule()
    mod[pair] = relay.Function([a, b], relay.Tuple([a + b, a * b])).with_attr("Compiler", "other")
    c = relay.var("c", shape=(2, 3))
    mod[single] = relay.Function([c], relay.tanh(c)).with_attr("Compiler", "other")
    mod["main"] = relay.Function([x, y], single(relay.TupleGetItem(pair(x, relay.exp(y)), 1)))
    p, q = np.linspace(-1, 2, 6, dtype="float32").reshape(2, 3), np.linspace(0, 1, 6, dtype="float32").reshape(2, 3)
    found = {var.name_hint: values for var, values in relay.analysis.get_calibration_data(mod, {"x": p, "y": q}).items()}
    expected = {"pair": ([p, np.exp(q)], [p + np.exp(q), p * np.exp(q)]), "single": ([p * np.exp(q)], [np.tanh(p * np.exp(q))])}
    for name, parts in expected.items():
        for key, arrays in zip(("inputs", "outputs"), parts, strict=True):
            for array, wanted in zip(found[name][key], arrays, strict=True):
                np.testing.assert_allclose(array.numpy(), wanted, rtol=1e-5)
    mod["main"] = relay.Function([x, y], pair(x, y))
    with pytest.raises(ValueError, match=r"expected one call of each partition \(pair, single\), found \['pair'\]"):
        relay.analysis.get_calibration_data(mod, {"x": p, "y": q})


def test_fused_functions_are_there_once():
    x = relay.var("x", shape=(2, 8))
    w, v = relay.var("w", shape=(8, 8)), relay.var("v", shape=(8, 8))
    body = relay.nn.relu(relay.nn.dense(relay.nn.relu(relay.nn.dense(x, w)), v))
    found = relay.analysis.extract_fused_functions(relay.IRModule.from_expr(body))
    assert [f.attrs.Primitive for f in found.values()] == [1]
