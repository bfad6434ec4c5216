"""Dataflow patterns: what each construct matches, how choices are undone, what a match knows, rewrites with them."""

import gc
import warnings

import numpy as np
import pytest
from support import Const, program

import relayc
from relayc.dialects.mlir import ir, live_contexts
from relayc.dialects.relay import IRModule, Pattern, RelayError, TensorType, build, make_tuple
from relayc.dialects.relay.base import OPS, Op
from relayc.pipelines.graph.pattern import (
    DFPattern,
    dominates,
    find_matches,
    is_constant,
    is_op,
    is_tuple_get_item,
    is_var,
    rewrite,
    wildcard,
)
from relayc.pipelines.graph.rewrite import Rules

X = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
IMAGE = np.linspace(-1, 1, 32, dtype=np.float32).reshape(1, 2, 4, 4)
WEIGHT = np.linspace(-1, 1, 36, dtype=np.float32).reshape(2, 2, 3, 3)


def relu(x):
    return build("nn.relu", x)


def add(x, y):
    return build("add", x, y)


def conv(x, weight, **attributes):
    return build("nn.conv2d", x, weight, padding=(1, 1), **attributes)


def results(mod):
    """The values that main returns."""
    return list(list(mod.main.regions[0].blocks[0].operations)[-1].operation.operands)


def matches(pattern, body, *arrays):
    """Whether a pattern matches the value that `body` builds of inputs."""
    mod = program(lambda *values: [body(*values)], arrays)
    return pattern.match(results(mod)[0]) is not None


def operators(match):
    """The operators of a match by name."""
    return [op.relay_name for op in match.operations]


# ---- operators ----------------------------------------------------------------------------------------------------------------------


def test_an_operator_with_patterns_of_its_operands():
    pattern = is_op("nn.relu")(is_op("exp")(wildcard()))
    assert matches(pattern, lambda x: relu(build("exp", x)), X)
    assert not matches(pattern, lambda x: relu(build("sin", x)), X)
    assert not matches(pattern, lambda x: build("exp", relu(x)), X)
    assert not matches(pattern, relu, X)


def test_an_operator_with_any_operands():
    assert matches(is_op("concatenate"), lambda x, y: build("concatenate", x, y, axis=0), X, X)
    assert matches(is_op("concatenate")(is_var(), is_var()), lambda x, y: build("concatenate", x, y, axis=0), X, X)
    assert not matches(is_op("concatenate")(is_var()), lambda x, y: build("concatenate", x, y, axis=0), X, X)


def test_any_operator_with_given_operands():
    pattern = wildcard()(is_op("exp"), is_var())
    assert matches(pattern, lambda x, y: build("subtract", build("exp", x), y), X, X)
    assert not matches(pattern, lambda x, y: build("subtract", y, build("exp", x)), X, X)
    assert matches(pattern, lambda x, y: build("multiply", y, build("exp", x)), X, X)  # commutes


def test_a_name_that_is_no_operator_is_an_error():
    with pytest.raises(RelayError, match=r"no operator 'nn\.reluu'"):
        is_op("nn.reluu")


def test_a_number_of_operands_that_the_operator_never_has_is_an_error():
    with pytest.raises(RelayError, match=r"a pattern for each of \(data, weight\), found 3"):
        is_op("nn.conv2d")(wildcard(), wildcard(), wildcard())


def test_operands_are_given_once():
    with pytest.raises(TypeError, match="has operands already"):
        is_op("nn.relu")(wildcard())(wildcard())


@pytest.mark.parametrize("made_of", [lambda x: x + 1, lambda x: x | None, lambda x: is_op("nn.relu")("x"), lambda x: x.optional(print)])
def test_what_is_no_pattern_is_an_error(made_of):
    with pytest.raises(TypeError, match="expected a pattern, found"):
        made_of(wildcard())


def test_arguments_and_constants():
    one = Const(np.ones((2, 3), np.float32))
    large = Const(np.ones((2, 1024, 3), np.float32))  # stands in the parameter table
    pattern = is_op("subtract")(is_var(), is_constant())
    assert matches(pattern, lambda x, c: build("subtract", x, c), X, one)
    assert matches(pattern, lambda x, c: build("subtract", x, c), X[:, None], large)
    assert not matches(pattern, lambda x, c: build("subtract", c, x), X, one)
    assert not matches(pattern, lambda x, y: build("subtract", x, y), X, X)
    assert not matches(is_var(), relu, X)


def test_further_results_of_an_operator():
    split = is_op("split")(is_var())
    mod = program(lambda x: [relu(part) for part in build("split", x, indices_or_sections=3, axis=1)], [X])
    first, second, third = results(mod)
    assert is_op("nn.relu")(split).match(first) is None
    assert is_op("nn.relu")(is_tuple_get_item(split, 0)).match(first) is not None
    assert is_op("nn.relu")(is_tuple_get_item(split, 1)).match(second) is not None
    assert is_op("nn.relu")(is_tuple_get_item(split, 1)).match(third) is None
    assert all(is_op("nn.relu")(is_tuple_get_item(split)).match(value) is not None for value in (first, second, third))


def test_two_results_of_one_operation():
    part = is_op("split")
    pattern = is_tuple_get_item(part, 0) - is_tuple_get_item(part, 1)

    def of_one(x):
        low, high = build("split", x, indices_or_sections=2, axis=1)
        return build("subtract", low, high)

    def of_two(x):
        low, _ = build("split", x, indices_or_sections=2, axis=1)
        _, high = build("split", relu(x), indices_or_sections=2, axis=1)
        return build("subtract", low, high)

    assert matches(pattern, of_one, X[:, :2])
    assert not matches(pattern, of_two, X[:, :2])


# ---- constraints --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"groups": 1}, True),  # a default
        ({"padding": [1, 1]}, True),
        ({"padding": (1, 1), "groups": 2}, False),
        ({"channels": None}, True),
        ({"TOpPattern": Pattern.OUT_ELEMWISE_FUSABLE}, True),
        ({"TOpPattern": Pattern.ELEMWISE}, False),
    ],
)
def test_attributes(attributes, expected):
    assert matches(is_op("nn.conv2d").has_attr(attributes), conv, IMAGE, WEIGHT) == expected


def test_attributes_of_any_operator():
    pattern = wildcard().has_attr({"axis": 1})
    assert matches(pattern, lambda x: build("nn.softmax", x, axis=1), X)
    assert not matches(pattern, relu, X)
    assert not matches(pattern, lambda x: x, X)


def test_attributes_of_any_operator_with_given_operands():
    elementwise = wildcard().has_attr({"TOpPattern": Pattern.ELEMWISE})(is_var())
    assert matches(elementwise, relu, X)
    assert not matches(elementwise, lambda x: relu(relu(x)), X)
    assert not matches(elementwise, lambda x: build("transpose", x), X)


def test_an_attribute_that_the_operator_does_not_have_is_an_error():
    with pytest.raises(RelayError, match=r"nn\.relu has no attribute axis"):
        is_op("nn.relu").has_attr({"axis": 1})


def test_types():
    value = wildcard()
    for pattern in (
        value.has_type(TensorType((2, 3), "float32")),
        value.has_shape((2, 3)),
        value.has_shape([None, 3]),
        value.has_dtype("float32"),
    ):
        assert matches(pattern, relu, X)
    for pattern in (
        value.has_type(TensorType((2, 3), "float64")),
        value.has_type(TensorType((2, 4), "float32")),
        value.has_shape((2, None, 3)),
        value.has_shape((3, 2)),
        value.has_dtype("float16"),
    ):
        assert not matches(pattern, relu, X)


def test_a_predicate_is_asked_of_values_that_match_otherwise():
    narrow = is_op("nn.softmax").satisfies(lambda value: value.owner.axis == 1)  # relu has no axis: it must not be asked
    assert matches(narrow, lambda x: build("nn.softmax", x, axis=1), X)
    assert not matches(narrow, lambda x: build("nn.softmax", x, axis=0), X)
    assert not matches(narrow, relu, X)


# ---- choices ------------------------------------------------------------------------------------------------------------------------


def test_alternatives_are_tried_from_left_to_right():
    left, right = wildcard(), is_op("nn.relu")
    mod = program(lambda x: [relu(x)], [X])
    match = (left | right).match(results(mod)[0])
    assert left in match
    assert right not in match
    assert match.get(right) is None
    with pytest.raises(KeyError, match="not taken"):
        match[right]


def test_alternatives_share_operands():
    pattern = (is_op("exp") | is_op("sin"))(is_var())
    assert matches(pattern, lambda x: build("exp", x), X)
    assert matches(pattern, lambda x: build("sin", x), X)
    assert not matches(pattern, lambda x: build("cos", x), X)
    assert not matches(pattern, lambda x: build("sin", relu(x)), X)


def test_an_option_is_taken_where_it_matches():
    product = is_op("nn.dense")(wildcard(), wildcard())
    bias = wildcard()
    pattern = product.optional(lambda x: x + bias).optional(is_op("nn.relu"))
    mod = program(lambda x, w: [y := build("nn.dense", x, w), z := add(x, y), relu(z)], [X, np.ones((3, 3), np.float32)])
    plain, biased, both = (pattern.match(value) for value in results(mod))
    assert (len(plain.operations), len(biased.operations), len(both.operations)) == (1, 2, 3)
    assert bias not in plain
    assert bias in biased


COMMUTATIVE = {
    **dict.fromkeys(("add", "multiply", "maximum", "minimum", "equal", "not_equal"), X),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor"), X > 0),
}
"""Operators by name, and an operand of each."""


@pytest.mark.parametrize(("name", "array"), COMMUTATIVE.items())
def test_operators_that_commute_match_in_both_orders(name, array):
    pattern = is_op(name)(is_op("copy"), is_var())
    assert matches(pattern, lambda x, y: build(name, build("copy", x), y), array, array)
    assert matches(pattern, lambda x, y: build(name, y, build("copy", x)), array, array)


@pytest.mark.parametrize("name", ["subtract", "divide", "power", "less", "floor_mod"])
def test_operators_that_do_not_commute_match_in_their_order(name):
    pattern = is_op(name)(is_op("copy"), is_var())
    assert matches(pattern, lambda x, y: build(name, build("copy", x), y), X, X)
    assert not matches(pattern, lambda x, y: build(name, y, build("copy", x)), X, X)


def test_every_commutative_operator_is_tested():
    assert {name for name, op in OPS.items() if op.commutative} == COMMUTATIVE.keys()


def test_arithmetic_on_patterns():
    x, y = wildcard(), wildcard()
    for pattern, name in ((x + y, "add"), (x - y, "subtract"), (x * y, "multiply"), (x / y, "divide")):
        assert matches(pattern, lambda a, b, name=name: build(name, a, b), X, X)
        assert not matches(pattern, lambda a, b: build("power", a, b), X, X)


def test_a_pattern_in_two_places_matches_one_value():
    x = wildcard()
    assert matches(x * is_op("sigmoid")(x), lambda a, b: build("multiply", build("sigmoid", a), a), X, X)
    assert not matches(x * is_op("sigmoid")(x), lambda a, b: build("multiply", build("sigmoid", a), b), X, X)
    assert matches(wildcard() * is_op("sigmoid")(wildcard()), lambda a, b: build("multiply", build("sigmoid", a), b), X, X)


def test_an_operator_in_two_places_is_one_operation():
    exp = is_op("exp")(wildcard())
    pattern = exp / is_op("sum")(exp)

    def twice(x):
        return build("divide", build("exp", x), build("sum", build("exp", x), axis=(1,), keepdims=True))

    def once(x):
        y = build("exp", x)
        return build("divide", y, build("sum", y, axis=(1,), keepdims=True))

    assert matches(pattern, once, X)
    assert not matches(pattern, twice, X)


# ---- undone choices -----------------------------------------------------------------------------------------------------------------


def test_an_order_of_operands_is_undone():
    x = wildcard()
    pattern = (x + wildcard()) - x
    assert matches(pattern, lambda a, b: build("subtract", add(a, b), a), X, X)
    assert matches(pattern, lambda a, b: build("subtract", add(a, b), b), X, X)
    assert not matches(pattern, lambda a, b: build("subtract", add(a, b), relu(a)), X, X)


def test_an_alternative_is_undone():
    x = wildcard()
    pattern = (x | is_op("negative")(x)) - x
    assert matches(pattern, lambda a: build("subtract", a, a), X)
    assert matches(pattern, lambda a: build("subtract", build("negative", a), a), X)
    assert not matches(pattern, lambda a: build("subtract", build("negative", a), relu(a)), X)


def test_an_option_is_undone():
    x = wildcard()
    pattern = x.optional(is_op("nn.relu")) * is_op("exp")(is_op("nn.relu")(x))
    assert matches(pattern, lambda a: build("multiply", y := relu(a), build("exp", relu(y))), X)
    assert matches(pattern, lambda a: build("multiply", y := relu(a), build("exp", y)), X)


def test_the_first_of_several_choices_is_undone_last():
    x, y, z = wildcard(), wildcard(), wildcard()
    pattern = is_op("where")(is_op("less")(x, y), x + y, (y + z) - (z + x))

    def body(a, b, c):
        return build("where", build("less", a, b), add(b, a), build("subtract", add(c, b), add(a, c)))

    assert matches(pattern, body, X, X, X)


def test_what_did_not_match_is_forgotten():
    """The binding of a failed alternative is in no match."""
    dead = wildcard()
    pattern = is_op("nn.relu")(is_op("exp")(dead).satisfies(lambda value: False) | is_op("exp"))
    mod = program(lambda x: [relu(build("exp", x))], [X])
    assert dead not in pattern.match(results(mod)[0])


def lattice(depth):
    """Sums of two values from which 2 ** depth paths lead to the inputs."""

    def body(a, b):
        for _ in range(depth):
            a, b = add(a, b), add(b, a)
        return a

    return body


def test_failures_are_remembered():
    asked = []
    pattern = wildcard().satisfies(asked.append)  # None: of no value
    for _ in range(40):
        pattern = pattern + wildcard()
    assert not matches(pattern, lattice(40), X, X)
    assert len(asked) <= 4


def test_successes_are_remembered():
    asked = []
    pattern = wildcard().satisfies(lambda value: asked.append(value) is None)
    for _ in range(40):
        pattern = (pattern + wildcard().satisfies(lambda value: False)) | (pattern + wildcard())
    assert matches(pattern, lattice(40), X, X)
    assert len(asked) <= 8


def test_programs_and_patterns_may_be_deep():
    pattern = is_var()
    for _ in range(3000):
        pattern = is_op("nn.relu")(pattern)

    def body(x):
        for _ in range(3000):
            x = relu(x)
        return x

    assert matches(pattern, body, X)


def ways(pattern, value, bound):
    """Every way to match a value, by plain recursion: the reference. Patterns and values are sequences: kind or operator, then operands."""
    if id(pattern) in bound:
        if bound[id(pattern)] is value:
            yield bound
        return
    bound = {**bound, id(pattern): value}
    kind, *parts = pattern
    if kind == "any":
        yield bound
    elif kind == "alt":
        for part in parts:
            yield from ways(part, value, bound)
    elif kind == value[0]:
        orders = [value[1:], value[:0:-1]] if kind in ("add", "multiply") else [value[1:]]
        for operands in orders:
            found = [bound]
            for part, operand in zip(parts, operands, strict=True):
                found = [after for before in found for after in ways(part, operand, before)]
            yield from found


ARITY = {"add": 2, "multiply": 2, "subtract": 2, "nn.relu": 1}


def grown(rng, leaves, kinds, count):
    """Leaves, and tuples of a kind and some of those before."""
    nodes = list(leaves)
    for _ in range(count):
        kind = str(rng.choice(kinds))
        nodes.append((kind, *(nodes[i] for i in rng.integers(max(0, len(nodes) - 5), len(nodes), ARITY.get(kind, 2)))))
    return nodes


def made(node, leaf, made_of, memo):
    """What a sequence stands for: `leaf` of it, or `made_of` its kind and what its parts stand for. `memo` is by identity."""
    if id(node) not in memo:
        parts = [made(part, leaf, made_of, memo) for part in node[1:]]
        memo[id(node)] = made_of(node[0], *parts) if parts else leaf(node)
    return memo[id(node)]


@pytest.mark.parametrize("seed", range(40))
def test_matches_are_those_of_plain_recursion(seed):
    rng = np.random.default_rng(seed)
    values = grown(rng, [["input"], ["input"]], list(ARITY), 8)
    memo = {}

    def body(x, y):
        memo.update(zip(map(id, values[:2]), (x, y), strict=True))
        return [made(value, None, build, memo) for value in values]

    mod = program(body, [X, X])

    def pattern_of(kind, *parts):
        return parts[0] | parts[1] if kind == "alt" else is_op(kind)(*parts)

    agreed = {True: 0, False: 0}
    for _ in range(12):
        nodes = grown(rng, [["any"], ["any"], ["any"]], [*ARITY, "alt"], 5)
        patterns = {}
        root = made(nodes[-1], lambda node: wildcard(), pattern_of, patterns)
        for value, result in zip(values, results(mod), strict=True):
            found = root.match(result)
            expected = [{key: memo[id(v)] for key, v in way.items()} for way in ways(nodes[-1], value, {})]
            assert (found is not None) == bool(expected)
            agreed[found is not None] += 1
            if found is not None:
                assert {key: v for key, p in patterns.items() if (v := found.get(p)) is not None} in expected
    assert all(agreed.values())


# ---- dominators ---------------------------------------------------------------------------------------------------------------------

ELEMWISE = wildcard().has_attr({"TOpPattern": Pattern.ELEMWISE})(wildcard())
CONV = is_op("nn.conv2d")(is_var(), wildcard())
DIAMOND = dominates(CONV, ELEMWISE, is_op("add")(wildcard(), wildcard()))


def test_a_diamond():
    def body(x, w):
        y = conv(x, w)
        return add(relu(relu(y)), build("exp", y))

    mod = program(lambda x, w: [body(x, w)], [IMAGE, WEIGHT])
    match = DIAMOND.match(results(mod)[0])
    assert operators(match) == ["nn.conv2d", "nn.relu", "nn.relu", "exp", "add"]
    assert match[CONV].owner.relay_name == "nn.conv2d"
    assert match.is_closed()
    assert match.inputs == list(mod.main.regions[0].blocks[0].arguments)


def test_a_path_may_be_empty():
    def body(x, w):
        y = conv(x, w)
        return add(relu(y), y)

    assert matches(DIAMOND, body, IMAGE, WEIGHT)


def test_a_path_through_another_operator():
    def body(x, w):
        y = conv(x, w)
        z = relu(y)
        return add(build("exp", add(z, z)), build("exp", y))

    assert not matches(DIAMOND, body, IMAGE, WEIGHT)


def test_a_path_that_ends_elsewhere():
    assert not matches(DIAMOND, lambda x, w: add(relu(x), relu(conv(x, w))), IMAGE, WEIGHT)


def test_two_parents():
    assert not matches(DIAMOND, lambda x, w: add(relu(conv(x, w)), relu(conv(x, w))), IMAGE, WEIGHT)


def test_no_parent():
    assert not matches(DIAMOND, lambda x, w: add(relu(x), build("exp", x)), IMAGE, WEIGHT)


@pytest.mark.parametrize("which", [0, 1])
def test_a_use_outside_is_not_dominated(which):
    def body(x, w):
        y = conv(x, w)
        z = relu(y)
        return [add(z, build("exp", y)), (y, z)[which]]

    mod = program(body, [IMAGE, WEIGHT])
    assert DIAMOND.match(results(mod)[0]) is None


def test_a_path_of_anything():
    """The default path: from the sum back, everything but the convolution is on the way, its other operand included."""
    pattern = (wildcard() + wildcard()).dominates(CONV)
    assert matches(pattern, lambda x, w: add(build("transpose", conv(x, w), axes=(0, 1, 3, 2)), x), IMAGE, WEIGHT)
    assert not matches(pattern, lambda x, w: add(relu(x), x), IMAGE, WEIGHT)


def test_a_path_that_takes_constants():
    scale = Const(np.float32(2))
    through = (is_op("multiply") | is_op("nn.relu")) | is_constant()
    pattern = dominates(CONV, through, is_op("nn.relu"))
    assert matches(pattern, lambda x, w, c: relu(build("multiply", conv(x, w), c)), IMAGE, WEIGHT, scale)
    assert not matches(pattern, lambda x, w, c: relu(build("multiply", conv(x, w), c)), IMAGE, WEIGHT, np.float32(2))


def test_paths_of_two_parents_are_of_their_own():
    """What the path to one parent takes, that to the other does not."""

    def pattern(first, second):
        parent = is_op("exp")(wildcard())
        return is_op("add")(dominates(parent, is_op(first), is_op("abs")), dominates(parent, is_op(second), is_op("abs")))

    def body(x):
        y = build("abs", relu(build("exp", x)))
        return add(y, y)

    assert matches(pattern("nn.relu", "nn.relu"), body, X)
    for paths in (("nn.relu", "negative"), ("negative", "nn.relu")):
        assert not matches(pattern(*paths), body, X)


def test_the_nearest_parent_that_dominates_counts():
    parent = is_op("exp")(wildcard())
    pattern = dominates(parent, ELEMWISE, is_op("add"))

    def body(x):
        first = build("exp", x)
        second = build("exp", first)
        return add(relu(second), relu(relu(second)))

    mod = program(lambda x: [body(x)], [X])
    match = pattern.match(results(mod)[0])
    assert match[parent].owner.data.owner.relay_name == "exp"

    def two(x):
        first = build("exp", x)
        return add(build("exp", first), relu(first))  # the nearer one does not dominate

    mod = program(lambda x: [two(x)], [X])
    match = pattern.match(results(mod)[0])
    assert isinstance(match[parent].owner.data, ir.BlockArgument)


def test_a_parent_may_stand_in_the_child():
    parent = is_op("exp")(wildcard())
    pattern = dominates(parent, ELEMWISE, is_op("nn.relu")(wildcard()) - parent)
    assert matches(pattern, lambda x: build("subtract", relu(y := build("exp", x)), y), X)
    assert not matches(pattern, lambda x: build("subtract", relu(build("exp", x)), build("exp", x)), X)


# ---- matches ------------------------------------------------------------------------------------------------------------------------


def test_what_a_match_knows():
    x, weight, bias = wildcard(), is_constant(), wildcard()
    product = is_op("nn.conv2d")(x, weight)
    pattern = is_op("nn.relu")(product + bias)
    mod = program(lambda a, w, b: [relu(add(b, conv(a, w)))], [IMAGE, Const(WEIGHT), np.ones((2, 1, 1), np.float32)])
    (root,) = results(mod)
    match = pattern.match(root)
    image, channel = mod.main.regions[0].blocks[0].arguments
    assert match.root == match[pattern] == root
    assert match[x] == image
    assert match[bias] == channel
    assert operators(match) == ["constant", "nn.conv2d", "add", "nn.relu"]
    assert match.values == [match[weight], match[product], root.owner.data, root]
    assert match.inputs == [image, channel]
    assert match.is_closed()


def test_a_use_outside_opens_a_match():
    inner = is_op("exp")
    mod = program(lambda x: [relu(y := build("exp", x)), y, relu(z := build("exp", x)), relu(z)], [X])
    assert [is_op("nn.relu")(inner).match(value).is_closed() for value in (results(mod)[0], results(mod)[2])] == [False, False]


def test_further_results_used_outside_open_a_match():
    mod = program(lambda x: [relu((parts := build("split", x, indices_or_sections=3, axis=1))[0]), parts[1]], [X])
    assert not is_op("nn.relu")(is_tuple_get_item(is_op("split"), 0)).match(results(mod)[0]).is_closed()


def test_constants_may_be_shared():
    mod = program(lambda x, c: [relu(add(x, c)), build("subtract", x, c)], [X, Const(X)])
    assert is_op("nn.relu")(is_op("add")(wildcard(), is_constant())).match(results(mod)[0]).is_closed()


def test_a_match_across_a_branch_is_in_program_order():
    mod = IRModule.parse(
        """func.func @main(%c: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "relay.sin"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      %1 = "relay.exp"(%0) : (tensor<2xf32>) -> tensor<2xf32>
      %2 = "relay.if"(%c) ({
        %3 = "relay.cos"(%1) : (tensor<2xf32>) -> tensor<2xf32>
        %4 = "relay.nn_relu"(%3) : (tensor<2xf32>) -> tensor<2xf32>
        "relay.yield"(%4) : (tensor<2xf32>) -> ()
      }, {
        "relay.yield"(%x) : (tensor<2xf32>) -> ()
      }) : (tensor<i1>) -> tensor<2xf32>
      return %2 : tensor<2xf32>
    }"""
    )
    branch = list(mod.main.regions[0].blocks[0].operations)[2].operation.regions[0].blocks[0]
    value = list(branch.operations)[1].operation.results[0]
    match = is_op("nn.relu")(is_op("cos")(is_op("exp")(is_op("sin")))).match(value)
    assert operators(match) == ["sin", "exp", "cos", "nn.relu"]
    assert match.is_closed()
    assert find_matches(is_op("nn.relu")(is_op("cos")(is_op("exp"))), branch) == []
    assert len(find_matches(is_op("nn.relu")(is_op("cos")), branch)) == 1


def test_found_matches_share_no_operation_and_the_last_comes_first():
    mod = program(lambda x: [relu(relu(relu(relu(relu(x)))))], [X])
    block = mod.main.regions[0].blocks[0]
    relus = [op.operation for op in block.operations]
    found = find_matches(is_op("nn.relu")(is_op("nn.relu")), block)
    assert [[op.operation for op in match.operations] for match in found] == [relus[3:5], relus[1:3]]


def test_found_matches_are_closed():
    mod = program(lambda x: [relu(build("exp", x)), relu(y := build("exp", x)), y], [X])
    found = find_matches(is_op("nn.relu")(is_op("exp")), mod.main.regions[0].blocks[0])
    assert [match.root for match in found] == [results(mod)[0]]


def test_found_matches_may_share_constants():
    mod = program(lambda x, c: [add(x, c), build("exp", add(relu(x), c))], [X, Const(X)])
    found = find_matches(is_op("add")(wildcard(), is_constant()), mod.main.regions[0].blocks[0])
    assert len(found) == 2


def test_a_larger_match_takes_what_it_needs_first():
    mod = program(lambda x, w: [relu(conv(conv(x, w), w))], [IMAGE, WEIGHT])
    found = find_matches(is_op("nn.conv2d").optional(is_op("nn.relu")), mod.main.regions[0].blocks[0])
    assert [operators(match) for match in found] == [["nn.conv2d", "nn.relu"], ["nn.conv2d"]]


@pytest.mark.memory
def test_no_match_keeps_the_program():
    def search():
        before = live_contexts()
        mod = program(lambda x, w: [add(relu(y := conv(x, w)), build("exp", y))], [IMAGE, WEIGHT])
        match = DIAMOND.match(results(mod)[0])
        assert match.is_closed()
        assert dominates(CONV, ELEMWISE, is_op("add")(is_op("sin"), wildcard())).match(results(mod)[0]) is None
        assert live_contexts() == before + 1

    gc.collect()
    before = live_contexts()
    gc.disable()
    try:
        search()
        assert live_contexts() == before
    finally:
        gc.enable()


# ---- rewrites -----------------------------------------------------------------------------------------------------------------------


def swish_of(x):
    return build("multiply", x, build("sigmoid", x))


def test_a_rewrite_computes_the_same():
    x = wildcard()

    def quotient(match, rw):
        data = match[x]
        one = rw.mod.constant(np.ones(1, np.float32))
        return build("divide", data, add(one, build("exp", build("negative", data))))

    mod = rewrite(x * is_op("sigmoid")(x), quotient, program(lambda a: [swish_of(swish_of(a))], [X]))
    mod.verify()
    assert "relay.sigmoid" not in str(mod)
    assert str(mod).count("relay.divide") == 2

    def swish(a):
        return a / (1 + np.exp(-a))

    np.testing.assert_allclose(relayc.compile(mod)["main"](X), swish(swish(X)), rtol=1e-5, atol=1e-6)


def test_a_rewrite_in_a_compilation():
    """relu(x) + relu(-x) -> abs(x), as a pass of a user's."""
    x = wildcard()
    rules = Rules("AbsOfRelus")
    seen = []

    @rules.match(is_op("nn.relu")(x) + is_op("nn.relu")(is_op("negative")(x)))
    def absolute(match, rw):
        seen.append(match.is_closed())
        return build("abs", match[x])

    @relayc.module_pass(opt_level=0, name="AbsOfRelus")
    def abs_of_relus(mod, ctx):
        rules.apply(mod)
        return mod

    mod = program(lambda a: [add(relu(build("negative", a)), relu(a))], [X])
    with relayc.PassContext(config={"pipelines.add_pass": [("before:SimplifyExpr", abs_of_relus)]}):
        module = relayc.compile(mod)
    np.testing.assert_array_equal(module["main"](X), np.abs(X))
    assert seen == [True]


def test_sweeps_go_on_until_no_rule_applies():
    rules = Rules("Again")

    @rules.on("exp")
    def before_abs(op, rw):
        return build("tanh", op.data) if any(user.relay_name == "abs" for user in rw.users(op.result) if isinstance(user, Op)) else None

    @rules.on("nn_relu")
    def always(op, rw):
        return build("abs", op.data)

    with warnings.catch_warnings(action="error"):  # rules that come to an end do not warn
        mod = rules.apply(program(lambda x: [relu(build("exp", x))], [X]))
    assert [op.operation.name for op in mod.main.regions[0].blocks[0].operations] == ["relay.tanh", "relay.abs", "func.return"]


def test_a_pattern_says_how_it_matches():
    with pytest.raises(NotImplementedError):
        DFPattern().alternatives(None, None)


def test_a_rewrite_goes_on_until_nothing_matches():
    inner = wildcard()
    mod = rewrite(
        is_op("nn.relu")(is_op("nn.relu")(inner)), lambda match, rw: relu(match[inner]), program(lambda x: [relu(relu(relu(x)))], [X])
    )
    assert str(mod).count("relay.nn_relu") == 1


def test_a_callback_may_decline():
    mod = program(lambda x: [relu(x)], [X])
    before = str(mod)
    assert str(rewrite(is_op("nn.relu"), lambda match, rw: None, mod)) == before


def test_a_rewrite_that_gives_another_type_is_refused():
    x = wildcard()
    given = "expected a rule that gives .*f32.*, found one that gives .*f16"
    with pytest.raises(RelayError, match=given):
        rewrite(is_op("nn.relu")(x), lambda match, rw: build("cast", match[x], dtype="float16"), program(lambda a: [relu(a)], [X]))


def test_a_rewrite_that_never_ends_is_warned_of():
    with pytest.warns(RuntimeWarning, match="again: the rules do not come to an end"):

        def again(match, rw):
            return relu(match[x])

        x = wildcard()
        rewrite(is_op("nn.relu")(x), again, program(lambda a: [relu(a)], [X]))


def test_a_rewrite_of_several_results():
    """A rule gives a value for each result of the operation that its pattern ends in, one of which the pattern may name."""
    topk = is_op("topk")

    def sorted_(match, rw):
        data = match[topk].owner.data
        order = build("argsort", data, axis=1, is_ascend=False, dtype="int32")
        return [build("sort", data, axis=1, is_ascend=False), order]

    mod = program(lambda x: list(build("topk", x, k=3, axis=1)), [X])
    rewrite(is_tuple_get_item(topk, 1), sorted_, mod)
    assert "topk" not in str(mod)
    values, indices = relayc.compile(mod)["main"](X)
    np.testing.assert_array_equal(values, np.sort(X, axis=1)[:, ::-1])
    np.testing.assert_array_equal(np.take_along_axis(X, indices, 1), values)


def test_a_rewrite_of_a_tuple():
    def slices(match, rw):
        data = match[split].owner.data
        return make_tuple([build("strided_slice", data, begin=(i,), end=(i + 1,), axes=(1,)) for i in range(3)])

    split = is_op("split")
    mod = program(lambda x: [build("concatenate", *build("split", x, indices_or_sections=3, axis=1)[::-1], axis=1)], [X])
    module = relayc.compile(rewrite(split, slices, mod))
    np.testing.assert_array_equal(module["main"](X), X[:, ::-1])


def test_a_rewrite_of_any_value_is_an_error():
    mod = program(lambda x: [relu(x)], [X])
    with pytest.raises(ValueError, match="expected a pattern that ends in an operator"):
        rewrite(is_op("nn.relu") | wildcard(), lambda match, rw: None, mod)


def test_a_rule_does_not_see_the_dead():
    """An operation that an earlier rule has replaced does not open a match."""
    rules = Rules("Dead")
    closed = []

    @rules.on("copy")
    def copy(op, rw):
        return op.data

    @rules.match(is_op("nn.relu")(is_op("exp")))
    def ask(match, rw):
        closed.append(match.is_closed())

    def body(x):
        y = build("exp", x)
        build("copy", y)
        return [relu(y)]

    rules.apply(program(body, [X]))
    assert closed[0]
