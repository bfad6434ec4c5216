"""Programs of the Relay language as Python objects."""

import numpy as np
import pytest

from relayc.frontend.relay import ast as relay
from relayc.frontend.relay.ast.functor import rebuilt_type
from relayc.frontend.relay.op import op
from relayc.symbolic import symbol

DEPTH = 10_000


def nested_lets() -> relay.Expr:
    names = [relay.Var(f"v{i}") for i in range(DEPTH)]
    body: relay.Expr = names[-1]
    for before, var in zip(names[-2::-1], names[:0:-1], strict=True):
        body = relay.Let(var, before + before, body)
    return body


def nested_calls() -> relay.Expr:
    x = relay.var("x", shape=(2,))
    found: relay.Expr = x
    for _ in range(DEPTH):
        found = op.exp(found)
    return relay.Function([x], found)


def test_nodes_are_immutable():
    x = relay.var("x", "int32")
    with pytest.raises(AttributeError, match="immutable"):
        x.vid = relay.Id("y")
    assert x.name_hint == "x" and x.type_annotation == relay.scalar_type("int32")


def test_functions_are_equal_but_for_names():
    x, y, a, b = (relay.var(name, shape=(2, 3)) for name in "xyab")
    f, g = relay.Function([x, y], x - y), relay.Function([a, b], a - b)
    assert relay.structural_equal(f, g) and relay.structural_hash(f) == relay.structural_hash(g)
    assert not relay.structural_equal(f, relay.Function([a, b], b - a))
    with pytest.raises(ValueError, match="expected equal programs"):
        relay.assert_structural_equal(f, relay.Function([a, b], b - a))


def test_free_variables_are_mapped_on_request():
    x, y, a, b = map(relay.var, "xyab")
    assert not relay.structural_equal(x + y, a + b)
    assert relay.structural_equal(x + y, a + b, map_free_vars=True)
    assert not relay.structural_equal(x + y, a + a, map_free_vars=True)
    assert not relay.structural_equal(x + y, a + relay.var("b", "float16"), map_free_vars=True)


def test_sharing_makes_a_difference():
    x = relay.var("x")
    shared = op.exp(x)
    assert not relay.structural_equal(relay.Tuple([shared, shared]), relay.Tuple([op.exp(x), op.exp(x)]))


def test_constants_are_equal_by_dtype_and_elements():
    assert relay.structural_equal(relay.const([1, 2]), relay.const(np.array([1, 2], "int32")))
    assert not relay.structural_equal(relay.const([1, 2]), relay.const(np.array([1, 2], "int64")))
    assert relay.const(np.ones(2, np.int16), "").dtype == "int16"
    assert relay.const(1.5).dtype == "float32" and relay.const(1 << 40).dtype == "int64"
    numbers = (-(1 << 31) - 1, -(1 << 31), (1 << 31) - 1, 1 << 31)
    assert [relay.const(number).dtype for number in numbers] == ["int64", "int32", "int32", "int64"]


def test_types_are_equal_by_structure():
    a, b = relay.TypeVar("a"), relay.TypeVar("b")
    assert relay.FuncType([a], a, [a]) == relay.FuncType([b], b, [b])
    assert relay.TensorType((relay.Any(), 3)) == relay.TensorType((relay.Any(), 3))
    assert len({relay.TupleType([relay.scalar_type("int8")]), relay.TupleType([relay.scalar_type("int8")])}) == 1
    assert relay.TensorType((1, 2)) != relay.TensorType((1, 2), "int32")


def test_variables_of_an_expression():
    x, y, z = map(relay.var, "xyz")
    let = relay.Let(y, x + x, y * z)
    assert relay.free_vars(let) == [x, z]
    assert relay.bound_vars(let) == [y]
    assert relay.all_vars(let) == [y, x, z]
    assert not relay.well_formed(relay.Let(x, relay.const(1), relay.Let(x, relay.const(2), x)))
    assert relay.well_formed(let)
    assert not relay.well_formed(relay.Function([x], relay.Function([x, y], y)))
    assert not relay.well_formed(relay.Function([x, x], x))
    functions = {relay.GlobalVar("f"): relay.Function([y], y), relay.GlobalVar("g"): relay.Function([x, x], x)}
    assert not relay.well_formed(relay.RelayModule(functions))


def test_variables_of_patterns():
    x, y, z = map(relay.var, "xyz")
    pair = relay.PatternTuple([relay.PatternVar(x), relay.PatternWildcard(), relay.PatternVar(y)])
    assert relay.bound_vars(pair) == [x, y]
    match = relay.Match(z, [relay.Clause(pair, x), relay.Clause(relay.PatternVar(x), x)])
    assert relay.free_vars(match) == [z] and relay.bound_vars(match) == [x, y]
    assert not relay.well_formed(match)  # two clauses bind x
    assert relay.well_formed(relay.Match(z, [relay.Clause(pair, x), relay.Clause(relay.PatternWildcard(), z)]))
    assert not relay.well_formed(relay.Tuple([relay.Match(z, [relay.Clause(pair, x)]), y]))  # y is used outside of its clause


def test_arrays_among_attributes_are_equal_by_dtype_and_elements():
    def call(*numbers, dtype="int32"):
        return relay.Call(relay.GlobalVar("f"), [], relay.Attrs({"at": np.array(numbers, dtype)}))

    assert relay.structural_equal(call(1, 2), call(1, 2))
    assert relay.structural_hash(call(1, 2)) == relay.structural_hash(call(1, 2))
    assert not relay.structural_equal(call(1, 2), call(1, 3)) and not relay.structural_equal(call(1, 2), call(1, 2, dtype="int64"))


def test_what_is_the_same_node_or_array():
    x, one = relay.var("x"), relay.const(1)
    assert x.same_as(x) and not x.same_as(relay.var("x"))
    assert one.data.same_as(one.data) and not one.data.same_as(relay.const(1).data)


def test_type_variables_of_a_function():
    a, b = relay.TypeVar("a"), relay.TypeVar("b")
    f = relay.Function([relay.Var("x", relay.TupleType([a, b]))], relay.const(1), None, [a])
    assert relay.all_type_vars(f) == [a, b]
    assert relay.bound_type_vars(f) == [a] and relay.free_type_vars(f) == [b]
    of_type = relay.FuncType([a, b], a, [a])
    assert relay.bound_type_vars(of_type) == [a] and relay.free_type_vars(of_type) == [b]


def test_bind_removes_parameters_and_adds_new_ones():
    x, y, z = map(relay.var, "xyz")
    found = relay.bind(relay.Function([x, y], x + y), {x: op.exp(z)})
    assert relay.structural_equal(found, relay.Function([y, z], op.exp(z) + y))
    assert relay.bind_params_by_name(relay.Function([x], x), {"x": 1.5}).params == ()
    with pytest.raises(ValueError, match="parameter x: expected one of the name, found 2"):
        relay.bind_params_by_name(relay.Function([x, relay.var("x")], x), {"x": 1.5})
    with pytest.raises(ValueError, match="var x: expected a type or a shape, found both"):
        relay.var("x", "int32", shape=(2,))


def test_mutator_keeps_what_it_does_not_change():
    class Doubles(relay.ExprMutator):
        def visit_constant(self, constant):
            return relay.const(constant.data * 2)

    x, y = map(relay.var, "xy")
    kept = op.exp(x)
    found = Doubles().visit(relay.Tuple([kept, y + relay.const(3)]))
    assert found.fields[0] is kept
    assert relay.structural_equal(found.fields[1], y + relay.const(6))


def test_functor_has_no_methods_of_its_own():
    with pytest.raises(NotImplementedError, match="Var"):
        relay.ExprFunctor().visit(relay.var("x"))
    with pytest.raises(NotImplementedError, match="TensorType"):
        relay.TypeFunctor().visit(relay.scalar_type("int8"))
    with pytest.raises(TypeError, match="expected an expression, found int"):
        relay.ExprFunctor().visit(1)
    with pytest.raises(TypeError, match="expected a type, found int"):
        relay.TypeFunctor().visit(1)


def test_methods_of_a_subclass_may_visit_the_parts_as_the_class_does():
    seen = []

    class Sizes(relay.ExprFunctor):
        def visit_var(self, var):
            seen.append(var.name_hint)
            return 1

        def visit_call(self, call):
            return sum(map(self.visit, call.args))

    class Names(relay.ExprVisitor):
        def visit_var(self, var):
            seen.append(var.name_hint)

        def visit_call(self, call):
            seen.append(call.op.name)
            super().visit_call(call)

    class Exponents(relay.ExprMutator):
        def visit_op(self, op):
            return relay.Op.get({"exp": "log"}.get(op.name, op.name))

        def visit_call(self, call):
            return super().visit_call(call) if call.op.name == "exp" else call

    class Types(relay.TypeVisitor):
        def visit_tensor_type(self, type_):
            seen.append(type_.dtype)

    x, y = relay.var("x"), relay.var("y")
    assert Sizes().visit((x + y) + (x + y)) == 4 and seen == ["x", "y"]  # what is shared is visited once
    Names().visit(op.exp(x) + y)
    assert seen[2:] == ["add", "exp", "x", "y"]
    changed = Exponents().visit(relay.Tuple([op.exp(x), x + op.exp(y)]))
    assert relay.structural_equal(changed, relay.Tuple([op.log(x), x + op.exp(y)]))
    Types().visit(relay.FuncType([relay.scalar_type("int8")], relay.TupleType([relay.scalar_type("bool")])))
    assert seen[6:] == ["int8", "bool"]


def test_visitor_visits_each_node_once():
    seen = []

    class Names(relay.ExprVisitor):
        def visit_var(self, var):
            seen.append(var.name_hint)

    x = relay.var("x")
    for _ in range(50):
        x = x + x
    Names().visit(x)
    assert seen == ["x"]


@pytest.mark.parametrize("program", [nested_lets, nested_calls])
def test_deep_programs(program):
    expr = program()
    count = 0

    def visit(_):
        nonlocal count
        count += 1

    relay.post_order_visit(expr, visit)
    assert count > DEPTH
    relay.ExprVisitor().visit(expr)
    assert relay.ExprMutator().visit(expr) is expr
    assert relay.structural_equal(expr, program(), map_free_vars=True)
    assert len(relay.free_vars(expr)) < 2 and relay.well_formed(expr)


def test_what_is_not_defined_is_an_error():
    x = relay.var("x", "int32")
    with pytest.raises(ValueError, match=r"is known: run relay\.transform\.InferType first"):
        _ = x.checked_type
    with pytest.raises(NotImplementedError, match="ExprFunctor: no method for Var"):
        relay.ExprFunctor().visit(x)
    with pytest.raises(NotImplementedError, match="TypeFunctor: no method for TensorType"):
        relay.TypeFunctor().visit(x.type_annotation)
    with pytest.raises(TypeError, match="expected a type, found Var"):
        relay.TypeFunctor().visit(x)


def test_scope_builder():
    x, cond = relay.var("x", "float32"), relay.var("c", "bool")
    scope = relay.ScopeBuilder()
    with scope.if_scope(cond):
        scope.ret(scope.let("y", op.exp(x)))
    with scope.else_scope():
        scope.ret(x)
    found = scope.get()
    assert isinstance(found, relay.If) and isinstance(found.true_branch, relay.Let) and found.false_branch is x
    with pytest.raises(RuntimeError, match="expected a result"):
        relay.ScopeBuilder().get()
    with pytest.raises(RuntimeError, match="else_scope: expected an if_scope before it"), scope.else_scope():
        pass
    with pytest.raises(RuntimeError, match="expected one result, found a second one"):
        scope.ret(x)
    typed = relay.ScopeBuilder()
    bound = typed.let(("z", relay.scalar_type("bool")), relay.const(True))
    typed.ret((bound, bound))
    assert str(typed.get()) == "let %z: bool = True;\n(%z, %z)"


def test_arithmetic_needs_expressions():
    with pytest.raises(TypeError, match=r"relay\.const"):
        relay.var("x") + 1
    with pytest.raises(TypeError, match="add: expected expressions, found str"):
        relay.var("x") + "1"
    cast = relay.var("x").astype("int8")
    assert cast.op.name == "cast" and cast.attrs.dtype == "int8"
    with pytest.raises(TypeError, match="astype: expected a tensor, found a tuple"):
        relay.Tuple([relay.var("x")]).astype("int8")


def test_attributes_are_read_by_name_and_type():
    attrs = relay.Attrs({"axis": np.int64(3), "sizes": [np.int64(1), 2], "name": 4})
    assert attrs.axis == 3 and attrs.get_int("axis") == 3 and type(attrs.get_int("axis")) is int
    assert attrs.get_int_tuple("sizes") == (1, 2) and attrs.get_str("name") == "4"
    assert attrs.list_field_info() == ["axis", "sizes", "name"]
    assert attrs == attrs and attrs != relay.Attrs({"axis": 3})
    with pytest.raises(AttributeError, match="no attribute values_"):
        object.__new__(relay.Attrs).values_  # noqa: B018 # it is read for its error
    with pytest.raises(AttributeError, match="no attribute other"):
        attrs.other  # noqa: B018 # it is read for its error
    f = relay.Function([], relay.const(1), attrs={"a": 1, "b": 2})
    assert dict(f.without_attr("a").attrs) == {"b": 2} and dict(f.with_attr({"b": 3, "c": 4}).attrs) == {"a": 1, "b": 3, "c": 4}


def test_dimensions():
    class Named:
        name = "n"

    assert relay.TensorType((Named(), "n", np.int64(2))).shape == (symbol("n"), symbol("n"), 2)
    assert relay.TensorType((3,)).shape[0].value == 3 and hash(relay.Any()) == hash(relay.Any()) and relay.Any() != 1
    with pytest.raises(TypeError, match=r"shape: expected integers, symbols or Any, found 1\.5"):
        relay.TensorType((1.5,))
    list_ = relay.GlobalTypeVar("List")
    assert list_(relay.scalar_type("int8")) == relay.TypeCall(list_, [relay.scalar_type("int8")])
    assert str(relay.Id("x")) == "x"


def test_modules_find_functions_by_name():
    x = relay.var("x")
    module = relay.RelayModule.from_expr(op.exp(x))
    module["f"] = relay.Function([x], x)
    assert [var.name_hint for var in module.get_global_vars()] == ["main", "f"]
    assert module["main"].params == (x,) and "f" in module
    with pytest.raises(KeyError, match="no function @g"):
        module["g"]
    other = relay.Function([x], x + x)
    module.update_func(module.get_global_var("f"), other)
    module["g"] = relay.RelayModule.from_expr(other)
    assert module["f"].body is other.body and module["g"].body is other.body and len(module.functions) == 3
    with pytest.raises(TypeError, match="function h: expected an expression, found int"):
        module["h"] = 1


def test_data_types_of_modules():
    header, a = relay.GlobalTypeVar("Box"), relay.TypeVar("A")
    box = relay.Constructor("Box_", [a], header)
    module = relay.RelayModule()
    module[header] = relay.TypeData(header, [a], [box])
    assert module.get_type("Box") == (header, box) and box.tag == 0
    assert module.get_constructor("Box", "Box_") is box
    with pytest.raises(KeyError, match="type Box has no constructor Boy"):
        module.get_constructor("Box", "Boy")
    with pytest.raises(KeyError, match=r"no type Bix in the module.*Box"):
        module.get_global_type_var("Bix")


def test_a_variable_that_is_bound_twice_is_numbered_each_time():
    x, y, other = relay.var("x", "float32"), relay.var("y", "float32"), relay.var("z", "float32")
    once = relay.Function([x], x)

    def both(first, body):
        return relay.Tuple([first, relay.Function([x, y], body)])

    assert not relay.structural_equal(both(once, x - y), both(once, y - x))
    assert relay.structural_hash(both(once, x - y)) != relay.structural_hash(both(once, y - x))
    renamed = both(relay.Function([other], other), x - y)
    assert relay.structural_equal(both(once, x - y), renamed)


def test_the_results_of_a_call_are_a_tuple_where_an_expression_holds_them():
    x, y = relay.var("x", shape=(4,)), relay.var("y")
    parts = op.split(x, 2)
    assert relay.Function([x], parts).body is parts.astuple()
    assert relay.Tuple([parts]).fields == (parts.astuple(),)
    assert relay.Let(y, parts, parts).value is relay.If(x, parts, parts).true_branch is relay.Call(y, [parts]).args[0]
    assert relay.free_vars(parts) == [x]
    assert relay.RelayModule.from_expr(parts)["main"].params == (x,)
    assert parts[-1].index == 1 and parts.astext() == parts.astuple().astext() and repr(parts).endswith(", 2)")
    for index in (-3, 2):
        with pytest.raises(IndexError, match=f"expected an index of 2 results, found {index}"):
            parts[index]
    scope = relay.ScopeBuilder()
    scope.ret([parts, x])
    assert scope.get().fields == (parts.astuple(), x)
    with pytest.raises(TypeError, match="expected an expression, found int"):
        relay.ScopeBuilder().ret([x, 1])


def test_a_type_of_which_one_part_changes():
    one, two = relay.TensorType((1,)), relay.TensorType((2,))
    assert rebuilt_type(relay.TupleType([one, two]), lambda part: two) == relay.TupleType([two, two])
