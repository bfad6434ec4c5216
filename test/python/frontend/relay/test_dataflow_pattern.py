"""Patterns of Relay expressions: what they match, what is rewritten, and what becomes a function."""

import numpy as np
import pytest

from relayc import relay
from relayc.frontend.relay.dataflow_pattern import (
    CallPattern,
    DFPatternCallback,
    FunctionPattern,
    dominates,
    has_attr,
    has_dtype,
    has_shape,
    has_type,
    is_constant,
    is_expr,
    is_if,
    is_let,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    partition,
    rewrite,
    wildcard,
)

ELEMWISE = 0
X, Y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(2, 3))


def same(a, b):
    relay.assert_structural_equal(a, b)


def test_leaves():
    assert is_var().match(X) and is_var("x").match(X) and not is_var("y").match(X)
    assert is_constant().match(relay.const(1.0)) and not is_constant().match(X)
    assert is_expr(X + Y).match(X + Y) and not is_expr(X + Y).match(Y + X)
    assert is_op("tanh").match(relay.op.get("tanh")) and not is_op("tanh").match(relay.op.get("exp"))


def test_calls_of_operators_with_arguments_in_any_order_where_they_commute():
    difference, total = is_op("subtract")(is_var("x"), is_var("y")), is_var("x") + is_var("y")
    assert total.match(X + Y) and total.match(Y + X)
    assert difference.match(X - Y) and not difference.match(Y - X)
    assert wildcard()(None).match(X * Y) and not wildcard()(wildcard()).match(X * Y)


def test_a_pattern_in_two_places_is_one_expression():
    a = wildcard()
    assert (a * a).match(X * X) and not (a * a).match(X * Y)


def test_products_and_quotients_associate():
    a, b, c = is_var("x"), is_var("y"), is_constant()
    two = relay.const(2.0)
    assert (a * b / c).match(X * (Y / two)) and (a * (b / c)).match((X * Y) / two)
    assert not (a * b / c).match(X / (Y / two)) and not (is_op("multiply")(None) / c).match(X * (Y / two))


def test_tuples_branches_lets_and_functions():
    pair = relay.Tuple([X, Y])
    assert is_tuple([is_var("x"), wildcard()]).match(pair) and is_tuple(None).match(pair) and not is_tuple([wildcard()]).match(pair)
    assert is_tuple_get_item(is_tuple(None), 1).match(relay.TupleGetItem(pair, 1))
    assert not is_tuple_get_item(is_tuple(None), 1).match(relay.TupleGetItem(pair, 0))
    cond = relay.var("c", shape=(), dtype="bool")
    assert is_if(is_var("c"), is_var("x"), is_var("y")).match(relay.If(cond, X, Y))
    assert not is_if(is_var("c"), is_var("x"), is_var("y")).match(relay.If(cond, Y, X))
    v = relay.var("v")
    assert is_let(is_var("v"), is_var("x"), wildcard()).match(relay.Let(v, X, v + v))
    a, b = wildcard(), wildcard()
    assert FunctionPattern([a, b], a - b).match(relay.Function([X, Y], X - Y))
    assert not FunctionPattern([a, b], a - b).match(relay.Function([X, Y], Y - X))
    assert FunctionPattern(None, wildcard()).match(relay.Function([X], X)) and not FunctionPattern(None, wildcard()).match(X)
    both = is_tuple([is_var("x"), is_constant()])
    assert len(both) == 2 and both[1].match(relay.const(1)) and not both[1].match(X) and len(is_tuple(None)) == 0
    assert isinstance(both.fields, tuple)


def test_types_and_attributes():
    total = X + Y
    assert has_shape([2, 3]).match(total) and not has_shape([3, 2]).match(total)
    assert has_dtype("float32").match(total) and not has_dtype("int32", wildcard()).match(total)
    assert has_type(relay.TensorType((2, 3), "float32")).match(total)
    assert not has_shape([2, 3]).match(relay.var("t"))  # of which no type is known
    named = is_var("x")
    for pattern, wrong in [
        (named.has_type(relay.TensorType((2, 3))), named.has_type(relay.TensorType((2, 3), "int8"))),
        (named.has_dtype("float32"), named.has_dtype("int8")),
        (named.has_shape([2, 3]), named.has_shape([3, 2])),
    ]:
        assert pattern.match(X) and not wrong.match(X) and not pattern.match(Y)
    exponent = is_op("exp")(wildcard())
    assert has_attr({"axis": 1}).match(relay.nn.softmax(X, axis=1)) and not has_attr({"axis": 1}, exponent).match(
        relay.nn.softmax(X, axis=1)
    )
    assert str(is_tuple_get_item(named, 1)) == "TupleGetItemPattern(VarPattern(x), 1)"
    softmax = relay.nn.softmax(X, axis=1)
    assert is_op("nn.softmax")(wildcard()).has_attr({"axis": 1}).match(softmax)
    assert not is_op("nn.softmax")(wildcard()).has_attr({"axis": 0}).match(softmax)
    assert not has_attr({"axis": 1, "TOpPattern": ELEMWISE}).match(softmax)
    assert is_op("exp").has_attr({"TOpPattern": ELEMWISE})(None).match(relay.exp(X))
    function = relay.Function([X], X).with_attr("Composite", "a")
    assert wildcard().has_attr({"Composite": "a"}).match(function) and not wildcard().has_attr({"Composite": "b"}).match(function)


def test_what_is_computed_of_a_parent_ends_in_a_child():
    steps = is_op("tanh")(wildcard()) | is_op("exp")(wildcard())
    pattern = dominates(is_op("nn.dense")(wildcard(), wildcard()), steps, is_op("add")(wildcard(), wildcard()))
    dense = relay.nn.dense(X, Y)
    assert pattern.match(relay.tanh(relay.exp(dense)) + relay.exp(dense))
    assert not pattern.match(relay.tanh(relay.exp(dense)) + relay.sqrt(dense))
    assert not pattern.match(relay.tanh(relay.exp(dense)) - relay.exp(dense))
    total = relay.tanh(dense) + relay.exp(dense)
    outside = relay.Tuple([total, relay.sqrt(dense)])
    assert not is_tuple([pattern, wildcard()]).match(outside)
    own = (is_op("add")(wildcard(), wildcard())).dominates(is_op("nn.dense")(wildcard(), wildcard()), steps)
    assert own.match(total) and not own.match(relay.sqrt(dense) + relay.exp(dense))
    one = wildcard()  # matches one expression, behind a path too
    assert is_tuple([own, one, one]).match(relay.Tuple([total, X, X])) and not is_tuple([own, one, one]).match(relay.Tuple([total, X, Y]))
    anything = is_op("add")(wildcard(), wildcard()).dominates(is_op("nn.dense")(wildcard(), wildcard()))
    assert anything.match(relay.sqrt(dense) + relay.exp(dense))
    # A variable or a constant beside the path is no way from elsewhere; something computed is.
    assert pattern.match(relay.tanh(dense) + Y) and not pattern.match(relay.tanh(dense) + relay.exp(X))
    found = pattern.partition(relay.nn.relu(relay.tanh(relay.exp(dense)) + relay.exp(dense)))
    inner = found.args[0]
    assert inner.op.attrs["PartitionedFromPattern"].startswith("nn.dense_exp_") and len(inner.args) == 2
    (left,), (right,) = (arg.args for arg in inner.op.body.args)
    assert left.args[0] is right  # the product is in the function once


class Squares(DFPatternCallback):
    """x * x -> power(x, 2)"""

    def __init__(self, **options):
        super().__init__(**options)
        self.x = wildcard()
        self.pattern = self.x * self.x

    def callback(self, pre, post, node_map):
        return relay.power(node_map[self.x][0], relay.const(2.0))


def test_rewrites_are_of_what_has_been_rewritten():
    two = relay.const(2.0)
    inner = X * X
    found = rewrite(Squares(), relay.tanh(inner * inner) + Y)
    same(found, relay.tanh(relay.power(relay.power(X, two), two)) + Y)
    same(Squares(require_type=True).rewrite(relay.tanh(inner * inner) + Y), found)
    assert rewrite(Squares(), X * Y).op.name == "multiply"
    odd = relay.var("x", shape=(2,)) + relay.var("y", shape=(3,))  # has no type
    assert rewrite(Squares(), odd * odd).op.name == "power"
    with pytest.raises(relay.TypeInferenceError):
        rewrite(Squares(require_type=True), odd * odd)
    # What they compute is the same.
    function, new = (relay.Function([X, Y], body) for body in (relay.tanh(inner * inner) + Y, found))
    x, y = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3), np.linspace(3, -2, 6, dtype=np.float32).reshape(2, 3)
    results = [relay.create_executor("graph").evaluate(f)(x, y).numpy() for f in (function, new)]
    np.testing.assert_allclose(results[1], results[0], rtol=1e-5)


class Wraps(DFPatternCallback):
    """exp(x) -> tanh(exp(x)), without an end."""

    def __init__(self, **options):
        super().__init__(**options)
        self.pattern = is_op("exp")(wildcard())

    def callback(self, pre, post, node_map):
        return relay.tanh(post)


def test_a_rewrite_may_be_done_once():
    same(rewrite(Wraps(rewrite_once=True), relay.exp(X)), relay.tanh(relay.exp(X)))


def test_matches_become_functions():
    pattern = is_op("nn.relu")(is_op("nn.dense")(wildcard(), wildcard()).optional(lambda d: d + wildcard()))
    w, b = relay.var("w", shape=(4, 3)), relay.var("b", shape=(4,))
    found = pattern.partition(relay.nn.relu(relay.nn.dense(relay.exp(X), w) + b), {"Composite": "dense"})
    assert found.op.attrs["PartitionedFromPattern"] == "nn.dense_add_nn.relu_" and found.op.attrs["Composite"] == "dense"
    same(relay.Tuple(found.args), relay.Tuple([relay.exp(X), w, b]))
    p, q, r = map(relay.var, "pqr")
    expected = relay.Function([p, q, r], relay.nn.relu(relay.nn.dense(p, q) + r))
    same(relay.Function(found.op.params, found.op.body), expected)
    assert pattern.partition(relay.nn.relu(relay.nn.dense(X, w)), check=lambda e: False).op.name == "nn.relu"
    assert isinstance(partition(pattern, relay.nn.relu(relay.nn.dense(X, w))).op, relay.Function)


def test_functions_of_matches_of_any_parts():
    pair = relay.Tuple([relay.exp(X), Y])
    field = is_tuple_get_item(is_tuple(None), 1).partition(relay.tanh(relay.TupleGetItem(pair, 1))).args[0]
    assert field.op.attrs["PartitionedFromPattern"] == "Tuple_TupleGetItem1_"
    same(relay.Tuple(field.args), relay.Tuple([relay.exp(X), Y]))
    call = is_op("add")(None).partition(relay.tanh(relay.exp(X) + Y)).args[0]
    assert call.op.attrs["PartitionedFromPattern"] == "add_"
    same(relay.Tuple(call.args), relay.Tuple([relay.exp(X), Y]))
    a, b = relay.var("a", shape=(2, 3)), wildcard()
    inner = FunctionPattern([b], is_op("exp")(b))
    whole = inner(wildcard()).partition(relay.tanh(relay.Function([a], relay.exp(a))(X))).args[0]
    assert whole.op.attrs["PartitionedFromPattern"] == "exp_FunctionCall_" and list(whole.args) == [X]


def test_a_match_that_shares_a_part_with_another_stays():
    pattern = is_op("exp")(is_op("exp")(wildcard()))
    found = pattern.partition(relay.exp(relay.exp(relay.exp(X))))
    assert str(found).count("PartitionedFromPattern") == 1


def test_what_others_use_stays_outside():
    dense = relay.nn.dense(X, Y)
    program = relay.nn.relu(dense) + dense
    pattern = is_op("nn.relu")(is_op("nn.dense")(wildcard(), wildcard()))
    assert pattern.partition(program) is program


def test_constants_that_a_pattern_names_stay_in_the_function():
    two = relay.const(2.0)
    named = (wildcard() * is_constant()).partition(X * two)
    assert len(named.args) == 1
    given = (wildcard() * wildcard()).partition(X * two)
    assert len(given.args) == 2 and given.args[1] is two


def test_a_wildcard_may_stand_for_what_contains_it():
    chain = wildcard()
    chain.redirect_to(is_op("exp")(chain) | is_var("x"))
    assert chain.match(relay.exp(relay.exp(X))) and chain.match(X) and not chain.match(relay.exp(Y))


def test_patterns_are_immutable_and_refuse_other_things():
    with pytest.raises(AttributeError, match="immutable"):
        is_var("x").name = "y"
    with pytest.raises(TypeError, match="expected a pattern"):
        (is_op("add")(X, Y)).match(X + Y)
    with pytest.raises(NotImplementedError):
        DFPatternCallback().callback(X, X, {})


def test_fields_of_patterns_with_several_values_are_tuples():
    x, y = wildcard(), wildcard()
    assert CallPattern(is_op("add"), [x, y]).args == (x, y) and CallPattern(x, None).args is None
    assert CallPattern(x, None)(y).args == (y,) and isinstance(CallPattern(x, None)(None), CallPattern)


def test_groups_have_no_expression_in_common():
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    body = x
    for _ in range(4):
        body = relay.subtract(body, y)
    pair = is_op("subtract")(is_op("subtract")(wildcard(), wildcard()), wildcard())
    found = pair.partition(body)
    assert isinstance(found.op, relay.Function) and isinstance(found.args[0].op, relay.Function)
    assert pair.partition(relay.subtract(body, y)).op.attrs["PartitionedFromPattern"] == "subtract_subtract_"


def test_alternatives_that_do_not_match_leave_nothing():
    one = is_op("exp")(wildcard())
    left, right = is_op("subtract")(one, is_op("tanh")(wildcard())), is_op("subtract")(wildcard(), wildcard())
    seen = []

    class Noting(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.pattern = left | right

        def callback(self, pre, post, node_map):
            seen.append([pattern in node_map for pattern in (left, one, right)])
            return post

    rewrite(Noting(), relay.exp(X) - relay.nn.relu(Y))
    rewrite(Noting(), relay.exp(X) - relay.tanh(Y))
    assert seen == [[False, False, True], [True, True, False]]
