"""Symbols of programs: where they have values, what they are at calls, branches and loops, and other sizes in their place."""

from collections.abc import Iterator

import pytest

from relayc.dialects.locations import label_of, named_location, source_of, sources_of
from relayc.dialects.mlir import func, ir, make_context
from relayc.dialects.relay import IRModule, RelayError, TensorType, build
from relayc.dialects.relay.calls import bindings_of, call, uncast
from relayc.dialects.relay.scopes import (
    SymbolNames,
    check_scopes,
    conditions_of,
    defined_by,
    normalize_sizes,
    replace_symbols,
    scope_before,
    symbols_in,
)
from relayc.dialects.relay.sizes import CastShape
from relayc.dialects.relay.structure import If, While
from relayc.dialects.relay.tuples import fields_of, make_tuple
from relayc.dialects.relay.types import TupleType, type_of
from relayc.dialects.relay.unify import joined, match, same_structure
from relayc.symbolic import Range, parse, symbol


def tensor(*shape: int | str, dtype: str = "float32") -> TensorType:
    return TensorType(tuple(parse(d) if isinstance(d, str) else d for d in shape), dtype)


# ---- unification


@pytest.mark.parametrize(
    ("patterns", "actuals", "expected"),
    [
        ([tensor("n", 3)], [tensor("2*m", 3)], {"n": "2*m"}),
        ([tensor("n", "n")], [tensor(4, 4)], {"n": "4"}),
        ([tensor("n"), tensor("n + past")], [tensor("k"), tensor("k + 7")], {"n": "k", "past": "7"}),
        ([tensor("2*n + 1")], [tensor("2*m + 5")], {"n": "m + 2"}),
        ([tensor("b*n"), tensor("b")], [tensor("m*k"), tensor("m")], {"b": "m", "n": "k"}),
        ([tensor("n + 1", "n")], [tensor("n + 2", "n + 1")], {"n": "n + 1"}),
        ([TupleType((tensor("n"), tensor("m", "n")))], [TupleType((tensor("m"), tensor("n", "m")))], {"n": "m", "m": "n"}),
        ([tensor("m", "m*n")], [tensor("n", "6*n")], {"m": "n", "n": "6"}),
        ([tensor("m", "m*n + 2*m")], [tensor("n", "n*n")], {"m": "n", "n": "n - 2"}),
        ([tensor("2*n*n + 2*n")], [tensor("2*n*n + 2*n")], {"n": "n"}),
        ([tensor("m*n*n", "m")], [tensor("2*n*m*m", "2*n")], {"m": "2*n", "n": "m"}),
        ([tensor("m*n*n + 1")], [tensor("n*m*m + 1")], {"m": "n", "n": "m"}),
    ],
)
def test_matching_finds_what_symbols_stand_for(patterns: list, actuals: list, expected: dict[str, str]) -> None:
    assert match(patterns, actuals, "it") == {name: parse(text) for name, text in expected.items()}


@pytest.mark.parametrize(
    ("patterns", "actuals", "message"),
    [
        ([tensor("n", "n")], [tensor(4, 5)], r"it: expected n to be 4, found 5 in tensor<4x5xf32> for tensor<\?x\?xf32"),
        ([tensor("n"), tensor("2*n")], [tensor("m"), tensor("m")], r"it: expected 2\*n to be 2\*m, found m in \("),
        ([tensor("2*n")], [tensor(7)], r"it: expected tensor<\?xf32, \[\"2\*n\"\]>, found tensor<7xf32>"),
        ([tensor(3)], [tensor("n")], r"it: expected tensor<3xf32>, found tensor<\?xf32, \[\"n\"\]>"),
        ([tensor("n")], [tensor("n", dtype="int8")], "it: expected tensor"),
        ([tensor("n")], [tensor("n", 1)], "it: expected tensor"),
        ([tensor("n - n//2")], [tensor(7)], r"it: expected tensor<\?xf32, "),
        ([tensor("n*n + n")], [tensor("m*m")], r"it: expected tensor<\?xf32, \[\"n\*n \+ n\"\]>, found tensor<\?xf32, \[\"m\*m\"\]>"),
    ],
)
def test_what_is_no_instance(patterns: list, actuals: list, message: str) -> None:
    with pytest.raises(RelayError, match=message):
        match(patterns, actuals, "it")


def test_symbols_that_are_not_bindable_are_themselves() -> None:
    assert match([tensor("n", "k")], [tensor("n", 5)], "it", {"k"}) == {"k": 5}
    with pytest.raises(RelayError):
        match([tensor("n", "k")], [tensor("m", 5)], "it", {"k"})


def test_types_that_differ_in_sizes_alone() -> None:
    assert same_structure(tensor("n"), tensor(4), tensor("m"))
    for others in ([tensor(4), tensor(4, 4)], [tensor(4, 4), tensor(4)], [tensor(4, dtype="int32"), tensor(4)]):
        assert not same_structure(tensor("n"), *others)


def test_joined_sizes_that_differ_alike_are_one_symbol() -> None:
    fresh = iter("xyz")
    found = joined(tensor("n", "n", 4, "n"), tensor("m", "m", 4, 7), lambda: symbol(next(fresh)), "it")
    assert found == tensor("x", "x", 4, "y")


# ---- scopes


def module(text: str) -> IRModule:
    return IRModule.parse(text)


SCOPES = {
    "an argument's": """
func.func @main(%x: tensor<?x?xf32, ["n", "2*n"]>) -> tensor<?x?xf32, ["2*n", "n"]> {
  %0 = "relay.transpose"(%x) : (tensor<?x?xf32, ["n", "2*n"]>) -> tensor<?x?xf32, ["2*n", "n"]>
  return %0 : tensor<?x?xf32, ["2*n", "n"]>
}""",
    "defined by data": """
func.func @main(%s: tensor<i64>) {
  "relay.define_sizes"(%s) {names = ["k"]} : (tensor<i64>) -> ()
  %0 = "relay.zeros"() {shape = ["k"]} : () -> tensor<?xf32, ["k"]>
  return
}""",
    "defined by a shape": """
func.func @main(%x: tensor<?xf32, ["2*n"]>, %y: tensor<?xf32, ["n"]>) {
  %0 = "relay.match_shape"(%x) {shape = ["k"]} : (tensor<?xf32, ["2*n"]>) -> tensor<?xf32, ["k"]>
  %1 = "relay.zeros"() {shape = ["k + n"]} : () -> tensor<?xf32, ["k + n"]>
  return
}""",
    "a region's": """
func.func @main(%c: tensor<i1>, %x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["k"]> {
  %0 = "relay.while"(%x) ({
  ^bb0(%a: tensor<?xf32, ["k"]>):
    "relay.yield"(%c) : (tensor<i1>) -> ()
  }, {
  ^bb0(%a: tensor<?xf32, ["k"]>):
    %1 = tensor.concat dim(0) %a, %x : (tensor<?xf32, ["k"]>, tensor<?xf32, ["n"]>) -> tensor<?xf32, ["k + n"]>
    "relay.yield"(%1) : (tensor<?xf32, ["k + n"]>) -> ()
  }) : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["k"]>
  %2 = "relay.zeros"() {shape = ["k"]} : () -> tensor<?xf32, ["k"]>
  return %0 : tensor<?xf32, ["k"]>
}""",
    "a call's": """
func.func private @f(%x: tensor<?xf32, ["a"]>) -> tensor<?xf32, ["2*a"]> {
  %0 = tensor.concat dim(0) %x, %x : (tensor<?xf32, ["a"]>, tensor<?xf32, ["a"]>) -> tensor<?xf32, ["2*a"]>
  return %0 : tensor<?xf32, ["2*a"]>
}
func.func @main(%x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["2*n"]> {
  %0 = "relay.cast_shape"(%x) {shape = ["a"]} : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["a"]>
  %1 = func.call @f(%0) : (tensor<?xf32, ["a"]>) -> tensor<?xf32, ["2*a"]>
  %2 = "relay.cast_shape"(%1) {shape = ["2*n"]} : (tensor<?xf32, ["2*a"]>) -> tensor<?xf32, ["2*n"]>
  return %2 : tensor<?xf32, ["2*n"]>
}""",
}


@pytest.mark.parametrize("name", SCOPES)
def test_symbols_with_values(name: str) -> None:
    check_scopes(module(SCOPES[name]).module)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            """
func.func @main(%x: tensor<?xf32, ["n"]>) {
  %0 = "relay.zeros"() {shape = ["n + k"]} : () -> tensor<?xf32, ["k + n"]> loc("here")
  return
}""",
            'relay.zeros at "here": expected symbols that have a value there, found k',
        ),
        (
            """
func.func @main(%s: tensor<i64>) {
  %0 = "relay.zeros"() {shape = ["k"]} : () -> tensor<?xf32, ["k"]>
  "relay.define_sizes"(%s) {names = ["k"]} : (tensor<i64>) -> ()
  return
}""",
            "relay.zeros at .*: expected symbols that have a value there, found k",
        ),
        (
            """
func.func @main(%c: tensor<i1>, %x: tensor<3xf32>) {
  %0 = "relay.if"(%c) ({
    %s = "relay.zeros"() {shape = [], dtype = "int64"} : () -> tensor<i64>
    "relay.define_sizes"(%s) {names = ["k"]} : (tensor<i64>) -> ()
    "relay.yield"(%x) : (tensor<3xf32>) -> ()
  }, {
    "relay.yield"(%x) : (tensor<3xf32>) -> ()
  }) : (tensor<i1>) -> tensor<3xf32>
  %1 = "relay.zeros"() {shape = ["k"]} : () -> tensor<?xf32, ["k"]>
  return
}""",
            "relay.zeros at .*: expected symbols that have a value there, found k",
        ),
        (
            """
func.func @main(%s: tensor<i64>, %x: tensor<?xf32, ["n"]>) {
  "relay.define_sizes"(%s) {names = ["n"]} : (tensor<i64>) -> ()
  return
}""",
            "relay.define_sizes at .*: expected names without a value there, found n",
        ),
        (
            """
func.func @main(%x: tensor<?xf32, ["n"]>) {
  %0 = "relay.match_shape"(%x) {shape = ["2*k"]} : (tensor<?xf32, ["n"]>) -> tensor<?xf32, ["2*k"]>
  return
}""",
            "relay.match_shape at .*: expected symbols that have a value there, found k",
        ),
    ],
)
def test_symbols_without_a_value(text: str, message: str) -> None:
    mod = module(text)
    with pytest.raises(RelayError, match=message):
        check_scopes(mod.module)


def operations(mod: IRModule) -> list[ir.OpView]:
    return list(mod.main.regions[0].blocks[0].operations)


def test_symbols_in_an_operation_and_before_it() -> None:
    shaped, looping = module(SCOPES["defined by a shape"]), module(SCOPES["a region's"])
    first, second, third, *_ = operations(shaped)
    assert [symbols_in(op) for op in (first, second, third)] == [{"k"}, {"k", "n"}, frozenset()]
    assert [scope_before(op) for op in (first, second)] == [{"n"}, {"n", "k"}]
    inside = operations(looping)[0].operation.regions[1].blocks[0].operations[0]
    assert scope_before(inside) == {"n", "k"}


def test_free_names() -> None:
    mod = module(SCOPES["a region's"])
    names = SymbolNames(mod.main)
    assert [str(names.free(name)) for name in ("k", "n", "z", "z")] == ["k_0", "n_0", "z", "z_0"]


def test_conditions_of_operations() -> None:
    text = """
func.func @main(%x: tensor<?x8xf32, ["n"]>) {
  %0 = "relay.nn_max_pool1d"(%y) {pool_size = array<i64: 3>} : (tensor<1x?x8xf32, ["n"]>) -> tensor<1x?x6xf32, ["n"]>
  %1 = "relay.strided_slice"(%x) {begin = array<i64: 0>, end = array<i64: 5>} : (tensor<?x8xf32, ["n"]>) -> tensor<?x8xf32, ["min(5, n)"]>
  %2 = "relay.zeros"() {shape = ["n - 3"]} : () -> tensor<?xf32, ["n - 3"]>
  %3 = "relay.argmax"(%x) {axis = array<i64: 0>} : (tensor<?x8xf32, ["n"]>) -> tensor<8xi32>
  return
}"""
    text = text.replace("(%x: tensor<?x8xf32", '(%y: tensor<1x?x8xf32, ["n"]>, %x: tensor<?x8xf32')
    mod = module(text)
    found = [[str(c.size) for c in conditions_of(op)] for op in operations(mod)[:4]]
    assert found == [[], [], ["n - 3"], ["n - 1"]]
    assert conditions_of(operations(mod)[3])[0].text.startswith("relay.argmax at ")
    mod.set_ranges({"n": Range(3, 100)})
    with mod.ranges:
        assert not any(conditions_of(op) for op in operations(mod))


# ---- replacement


def test_symbols_are_replaced_in_types_attributes_and_signatures() -> None:
    mod = module("""
func.func @main(%x: tensor<?x8xf32, ["n"]>, %s: tensor<i64>) -> tensor<?x?xf32, ["n", "k"]> {
  "relay.define_sizes"(%s) {names = ["k"]} : (tensor<i64>) -> ()
  %0 = "relay.sum"(%x) {axis = array<i64: 1>, keepdims = true} : (tensor<?x8xf32, ["n"]>) -> tensor<?x1xf32, ["n"]>
  %1 = "relay.broadcast_to"(%0) {shape = ["n", "k"]} : (tensor<?x1xf32, ["n"]>) -> tensor<?x?xf32, ["n", "k"]>
  return %1 : tensor<?x?xf32, ["n", "k"]>
}""")
    replace_symbols(mod.module.operation, {"n": parse("2*b"), "k": symbol("z")})
    mod.verify()
    assert '["2*b"]' in str(mod)
    assert 'shape = ["2*b", "z"]' in str(mod)
    assert '{names = ["z"]}' in str(mod)
    assert '-> tensor<?x?xf32, ["2*b", "z"]> {' in str(mod)
    replace_symbols(mod.module.operation, {"b": 3})
    mod.verify()
    assert '(tensor<6x1xf32>) -> tensor<6x?xf32, ["z"]>' in str(mod)
    with pytest.raises(RelayError, match="expected another symbol for z, which the data define, found 4"):
        replace_symbols(mod.module.operation, {"z": 4})


def test_a_field_that_is_cast_for_a_call_is_in_symbols_of_the_caller() -> None:
    of = 'tensor<?xf32, ["{}"]>'.format
    mod = module(f"""
func.func private @f(%x: {of("k")}) -> tensor<4xf32>
func.func @main(%t: tuple<{of("n")}, tensor<4xf32>>) -> tensor<4xf32> {{
  %0 = "relay.tuple_get_item"(%t) {{index = 0 : i64}} : (tuple<{of("n")}, tensor<4xf32>>) -> {of("n")}
  %1 = "relay.cast_shape"(%0) {{shape = ["k"]}} : ({of("n")}) -> {of("k")}
  %2 = call @f(%1) : ({of("k")}) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}}""")
    replace_symbols(mod.main, {"n": symbol("m"), "k": symbol("z")}, of_callees=False)
    mod.verify()
    assert f"({of('m')}) -> {of('k')}" in str(mod)


def test_a_size_of_a_reshape_that_becomes_0_is_no_code() -> None:
    mod = module("""
func.func @main(%x: tensor<8x?x3xf32, ["n"]>) -> tensor<?x8x3xf32, ["n"]> {
  %0 = "relay.reshape"(%x) {newshape = ["n", -1, 3]} : (tensor<8x?x3xf32, ["n"]>) -> tensor<?x8x3xf32, ["n"]>
  return %0 : tensor<?x8x3xf32, ["n"]>
}""")
    replace_symbols(mod.module.operation, {"n": 0})
    mod.verify()
    assert "allowzero = true, newshape = array<i64: 0, 8, 3>} : (tensor<8x0x3xf32>) -> tensor<0x8x3xf32>" in str(mod)


@pytest.mark.parametrize("lhs, rhs", [('"n"', '"2*m"'), ('"2*m"', '"n"')])
def test_sizes_that_are_to_be_equal_become_the_simpler_one(lhs: str, rhs: str) -> None:
    found = module(f"func.func @main(%x: tensor<?xf32, [{lhs}]>, %y: tensor<?xf32, [{rhs}]>) {{ return }}")
    block = found.main.regions[0].blocks[0]
    with found.context, ir.Location.unknown(), ir.InsertionPoint.at_block_begin(block):
        assert type_of(build("add", *block.arguments)) == tensor("n")
    assert [str(d) for op in operations(found) if op.operation.name == "relay.match_shape" for d in op.shape] == ["n"]


# ---- calls, branches and loops as they are built

CALLEES = """
func.func private @twice(%x: tensor<?x3xf32, ["n"]>, %y: tensor<?xf32, ["n + 1"]>) -> tensor<?x3xf32, ["2*n"]> {
  %0 = tensor.concat dim(0) %x, %x : (tensor<?x3xf32, ["n"]>, tensor<?x3xf32, ["n"]>) -> tensor<?x3xf32, ["2*n"]>
  return %0 : tensor<?x3xf32, ["2*n"]>
}
func.func private @some(%x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["k"]> {
  %s = "relay.zeros"() {shape = [], dtype = "int64"} : () -> tensor<i64>
  "relay.define_sizes"(%s) {names = ["k"]} : (tensor<i64>) -> ()
  %0 = "relay.zeros"() {shape = ["k"]} : () -> tensor<?xf32, ["k"]>
  return %0 : tensor<?xf32, ["k"]>
}
func.func private @pair(%x: tuple<tensor<?xf32, ["n"]>, tensor<4xf32>>) -> tuple<tensor<?xf32, ["n"]>, tensor<4xf32>> {
  return %x : tuple<tensor<?xf32, ["n"]>, tensor<4xf32>>
}
func.func @main(%c: tensor<i1>, %x: tensor<?x3xf32, ["2*m"]>, %y: tensor<?xf32, ["2*m + 1"]>, %z: tensor<?xf32, ["m"]>) {
  return
}
"""


@pytest.fixture
def mod() -> Iterator[IRModule]:
    """CALLEES, with an insertion point in main; the program is checked at the end."""
    found = module(CALLEES)
    with found.context, ir.Location.unknown(), ir.InsertionPoint.at_block_begin(found.main.regions[0].blocks[0]):
        yield found
    found.verify()
    check_scopes(found.module)


def arguments(mod: IRModule) -> list[ir.Value]:
    return list(mod.main.regions[0].blocks[0].arguments)


def test_a_call_gives_sizes_of_its_arguments(mod: IRModule) -> None:
    _, x, y, z = arguments(mod)
    assert type_of(call("twice", x, y)) == tensor("4*m", 3)
    made = next(op for op in operations(mod) if isinstance(op, func.CallOp))
    assert bindings_of(made, mod.module.body.operations[0]) == {"n": parse("2*m")}
    with pytest.raises(RelayError, match=r"arguments of @twice: expected n \+ 1 to be 2\*m \+ 1, found m in"):
        call("twice", x, z)


def test_sizes_that_only_a_callee_knows_are_new_at_each_call(mod: IRModule) -> None:
    _, _, y, z = arguments(mod)
    assert [type_of(call("some", v)) for v in (y, z)] == [tensor("k_0"), tensor("k_1")]


def test_a_result_of_a_call_defines_its_symbols_unless_casts_alone_read_it() -> None:
    tensor_, cast = 'tensor<?xf32, ["k"]>', '"relay.cast_shape"(%{}) {{shape = ["m"]}} : (tensor<?xf32, ["k"]>) -> tensor<?xf32, ["m"]>'
    both = f"tuple<{tensor_}, tensor<4xf32>>"
    field = '%{} = "relay.tuple_get_item"(%0) {{index = {} : i64}} : ({}) -> {}\n'
    parts = field.format(1, 0, both, tensor_) + field.format(2, 1, both, "tensor<4xf32>")
    for result, line, names in (
        (tensor_, "", {"k"}),
        (tensor_, f"%1 = {cast.format(0)}", set()),
        (both, parts, {"k"}),
        (both, f"{parts}%3 = {cast.format(1)}", set()),
    ):
        found = module(f"""
func.func private @some(%x: tensor<2xf32>) -> {result}
func.func @main(%x: tensor<2xf32>) {{
  %0 = call @some(%x) : (tensor<2xf32>) -> {result}
  {line}
  return
}}""")
        assert defined_by(next(op for op in operations(found) if isinstance(op, func.CallOp))) == names


def test_a_result_that_nothing_reads_beside_one_that_is_cast() -> None:
    def name(symbol: str) -> str:
        return f'tensor<?xf32, ["{symbol}"]>'

    check_scopes(
        module(f"""
func.func private @pair(%x: {name("n")}, %y: {name("p")}) -> ({name("n")}, {name("p")})
func.func @main(%x: {name("m")}, %y: {name("k")}) -> {name("m")} {{
  %a = "relay.cast_shape"(%x) {{shape = ["n"]}} : ({name("m")}) -> {name("n")}
  %b = "relay.cast_shape"(%y) {{shape = ["p"]}} : ({name("k")}) -> {name("p")}
  %c:2 = call @pair(%a, %b) : ({name("n")}, {name("p")}) -> ({name("n")}, {name("p")})
  %d = "relay.cast_shape"(%c#0) {{shape = ["m"]}} : ({name("n")}) -> {name("m")}
  return %d : {name("m")}
}}""").module
    )


def test_a_call_with_tuples(mod: IRModule) -> None:
    z = arguments(mod)[3]
    four = build("zeros", shape=(4,))
    found = call("pair", make_tuple([z, four]))
    assert isinstance(found, ir.Value)
    assert [type_of(v) for v in fields_of(found)] == [tensor("m"), tensor(4)]


def test_a_tuple_of_cast_fields_is_another_where_it_has_all_fields_of_that_in_order(mod: IRModule) -> None:
    def joined_of(*fields: ir.Value) -> ir.Value:
        return make_tuple([CastShape(field, shape=(symbol("n"),)).result for field in fields])

    z = arguments(mod)[3]
    pair, other, three = make_tuple([z, z]), make_tuple([z, z]), make_tuple([z, z, z])
    (a, b), (_, d), (e, f, _) = fields_of(pair), fields_of(other), fields_of(three)
    assert uncast(joined_of(a, b)) == pair
    for value in (joined_of(a, d), joined_of(b, a), joined_of(a, a), joined_of(e, f), joined_of(a, z), joined_of(a, b, z), joined_of(a)):
        assert uncast(value) == value


def test_branches_of_other_sizes_give_a_new_symbol(mod: IRModule) -> None:
    c, _, y, z = arguments(mod)
    found = If.create(c, lambda: make_tuple([y, y, z]), lambda: make_tuple([z, z, z]))
    assert type_of(found) == TupleType((tensor("branch"), tensor("branch"), tensor("m")))
    stated = If.create(c, lambda: y, lambda: z, tensor("r"))
    assert type_of(stated) == tensor("r")
    with pytest.raises(RelayError, match=r"types yielded by the regions: expected tensor.*2\*m \+ 1.*, found tensor"):
        If.create(c, lambda: y, lambda: z, tensor("2*m + 1"))


def test_a_loop_carries_sizes_that_change(mod: IRModule) -> None:
    c, _, y, z = arguments(mod)

    def grown(v: ir.Value) -> ir.Value:
        return build("concatenate", v, y, axis=0)

    found = While.create(z, lambda _: c, grown, tensor("k"))
    assert type_of(found) == tensor("k")
    kept = While.create(z, lambda _: c, lambda v: build("exp", v), tensor("l"))
    assert type_of(kept) == tensor("l")
    with pytest.raises(RelayError, match=r"relay.while at .*: type yielded by step: expected .*\"m\".*found .*3\*m \+ 1"):
        While.create(z, lambda _: c, grown)


def test_functions_of_a_later_stage_keep_their_types() -> None:
    strided = "memref<?xf32, strided<[?]>>"
    te = f'func.func @te(%x: {strided}) attributes {{relay.stage = "te"}} {{ return }}\nmemref.global "private" @g : memref<2xf32>'
    relay = 'func.func @main(%x: tensor<?xf32, ["1 + n"]>) -> tensor<?xf32, ["1 + n"]> { return %x : tensor<?xf32, ["1 + n"]> }'
    found = module(f"{te}\n{relay}")
    with found.context, ir.Location.unknown():
        normalize_sizes(found.module)
    assert '["n + 1"]' in str(found) and "1 + n" not in str(found) and f"@te(%arg0: {strided})" in str(found)


def test_tuples_go_through_calls(mod: IRModule) -> None:
    """A tuple that was taken apart to cast its fields is found again; a result of a call is cast to symbols of the caller first."""
    z = arguments(mod)[3]
    pair = make_tuple([z, build("zeros", shape=(4,))])
    again = call("pair", call("pair", pair))
    assert isinstance(again, ir.Value) and [type_of(v) for v in fields_of(again)] == [tensor("m"), tensor(4)]
    callee = mod.module.body.operations[2]
    twice = [op for op in operations(mod) if isinstance(op, func.CallOp)]
    assert [bindings_of(op, callee) for op in twice] == [{"n": parse("m")}] * 2


def test_a_name_in_a_label_is_the_source() -> None:
    with make_context():
        node = ir.Location.name("node")
        both = named_location("copy", node)
        assert (source_of(both), label_of(both), sources_of(both)) == (source_of(node), "copy", ("node",))
