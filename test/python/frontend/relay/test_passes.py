"""Passes on expressions: what they give, and that programs mean the same afterwards."""

import numpy as np
import pytest
from oracle import values

import relayc
from relayc import relay
from relayc.pipelines.context.instruments import PassInstrument
from relayc.relay import passes

transform = relay.transform


def main_of(text, *passes):
    return transform.Sequential([transform.InferType(), *passes])(relay.parse(f'#[version = "0.0.5"]\n{text}'))["main"]


def body(function):
    return " ".join(function.body.astext(show_meta_data=False, annotate=lambda expr: "").split("\n", 2)[-1].split())


def test_normal_forms_mean_the_same():
    x, c = relay.var("x", shape=(3,)), relay.var("c", "bool")
    y = relay.exp(x)
    branch = relay.If(c, relay.tanh(y), y + y)
    mod = relay.IRModule.from_expr(relay.Function([c, x], branch * y))
    data = values((3,))
    expected = relay.create_executor("graph", mod).evaluate()(True, data).numpy()
    for name in ("ToANormalForm", "ToBasicBlockNormalForm", "ToGraphNormalForm"):
        mod = getattr(transform, name)()(mod)
        found = relay.create_executor("graph", transform.InferType()(mod)).evaluate()(True, data).numpy()
        np.testing.assert_array_equal(found, expected, name)
        if name != "ToGraphNormalForm":
            relay.analysis.check_basic_block_normal_form(mod["main"])
    assert not any(isinstance(node, relay.Let) for node in nodes(mod["main"]))


def test_what_branches_share_is_bound_before_them():
    x, y, c = relay.var("x", shape=(3,)), relay.Var("y"), relay.var("c", "bool")
    shared = relay.exp(x)
    mod = relay.IRModule.from_expr(relay.Function([c, x], relay.If(c, relay.tanh(shared), shared)))
    expected = relay.Function([c, x], relay.Let(y, relay.exp(x), relay.If(c, relay.tanh(y), y)))
    relay.assert_structural_equal(transform.ToBasicBlockNormalForm()(mod)["main"], expected)


def nodes(expr):
    found = []
    relay.analysis.post_order_visit(expr, found.append)
    return found


def test_a_normal_form_binds_each_value_in_the_block_that_needs_it():
    x, c = relay.var("x", shape=(3,)), relay.var("c", "bool")
    found = transform.ToANormalForm()(relay.IRModule.from_expr(relay.Function([c, x], relay.If(c, relay.exp(x), x))))["main"]
    a, b = relay.Var("a"), relay.Var("b")
    expected = relay.Function([c, x], relay.Let(b, relay.If(c, relay.Let(a, relay.exp(x), a), x), b))
    relay.assert_structural_equal(found, expected)


def test_what_decides_between_branches_is_computed_before_them():
    x, a, b = relay.var("x", shape=()), relay.Var("a"), relay.Var("b")
    found = transform.ToANormalForm()(relay.IRModule.from_expr(relay.Function([x], relay.If(relay.isnan(x), x, x))))["main"]
    relay.assert_structural_equal(found, relay.Function([x], relay.Let(a, relay.isnan(x), relay.Let(b, relay.If(a, x, x), b))))


def test_functions_take_the_place_of_their_variables_unless_they_name_themselves():
    text = """def @main(%x: int) {
      let %f = fn (%y: int) -> int { %y + 1 };
      let %g = fn (%y: int) -> int { if (%y < 1) { %y } else { %g(%y - 1) } };
      %g(%f(%x)) }"""
    lets = [node.var.name_hint for node in nodes(main_of(text, transform.ToGraphNormalForm())) if isinstance(node, relay.Let)]
    assert lets == ["g"]


def test_normal_forms_take_deep_programs():
    x = y = relay.var("x", shape=(1,))
    for _ in range(5000):
        y = relay.tanh(y)
    mod = transform.ToANormalForm()(relay.IRModule.from_expr(relay.Function([x], y)))
    back = transform.ToGraphNormalForm()(mod)["main"]
    assert len(nodes(back)) == len(nodes(relay.Function([x], y)))


def test_dead_lets_are_dropped_but_for_effects():
    found = main_of("def @main(%x: int) { let %a = %x + 1; let %b = %a * 2; let %c = %x - 1; %c + %c }", transform.DeadCodeElimination())
    assert [node.var.name_hint for node in nodes(found) if isinstance(node, relay.Let)] == ["c"]
    r, x = relay.var("r"), relay.var("x", "int32")
    writes = relay.Let(r, relay.RefCreate(x), relay.Let(relay.var("u"), relay.RefWrite(r, relay.const(2)), relay.RefRead(r)))
    kept = transform.DeadCodeElimination()(relay.IRModule.from_expr(relay.Function([x], writes)))["main"]
    assert sum(isinstance(node, relay.Let) for node in nodes(kept)) == 2


def test_constructors_and_recursive_functions_have_no_effect():
    text = """type Box { Put(int) }
    def @down(%n: int) -> int { if (%n < 1) { %n } else { @down(%n - 1) } }
    def @main(%x: int) { let %a = Put(%x); let %b = @down(%x); %x }"""
    assert not any(isinstance(node, relay.Let) for node in nodes(main_of(text, transform.DeadCodeElimination())))


def test_values_of_references_are_read_where_they_were():
    mod = relay.parse("""
def @main(%x: int32) {
  let %r = ref(%x);
  let %k = fn (%d: int32) { let %o = ref_read(%r); let %u = ref_write(%r, %o + %d); %o };
  let %a = %k(%x * 10);
  let %b = %k(%a);
  let %c = ref_read(%r);
  let %u = ref_write(%r, 0);
  (%a, %b, %c)
}""")
    for step in (transform.ToGraphNormalForm(), transform.DeadCodeElimination(inline_once=True)):
        found = relay.create_executor("debug", step(transform.InferType()(mod))).evaluate()(3)
        assert [int(value.numpy()) for value in found] == [3, 33, 36]


def test_values_used_once_take_the_place_of_their_variables():
    once = transform.DeadCodeElimination(inline_once=True)
    found = main_of("def @main(%x: int) { let %a = %x + 1; let %f = fn (%y: int) -> int { %a + %y }; (%f(1), %f(2)) }", once)
    assert [node.var.name_hint for node in nodes(found) if isinstance(node, relay.Let)] == ["f", "a"]
    found = main_of("def @main(%x: int) { let %a = %x + 1; let %b = %a * 2; %b - 3 }", once)
    assert not any(isinstance(node, relay.Let) for node in nodes(found))


def test_functions_that_are_inlined_or_unused_are_dropped():
    x, y = relay.var("x", shape=(3,)), relay.var("y", shape=(3,))
    mod = relay.IRModule()
    f, g, h = (relay.GlobalVar(name) for name in "fgh")
    mod[f] = relay.Function([x], relay.exp(x)).with_attr("Inline", 1)
    mod[g] = relay.Function([x], f(x) + x)
    mod[h] = relay.Function([x], x)
    local = relay.Function([x], x * x)  # no function of the module
    mod["main"] = relay.Function([y], g(local(f(y))))
    found = transform.Inline()(mod)
    assert sorted(v.name_hint for v in found) == ["g", "h", "main"]
    relay.assert_structural_equal(found["main"], relay.Function([y], g(local(relay.exp(y)))))
    assert sorted(v.name_hint for v in transform.RemoveUnusedFunctions()(found)) == ["g", "main"]


def test_equal_calls_are_one():
    x = relay.var("x", shape=(3,))

    def sums(a, b):
        return relay.Function([x], relay.concatenate([a + relay.const(1.0), b + relay.const(1.0)], axis=0))

    one = relay.exp(x)
    twice = relay.IRModule.from_expr(sums(relay.exp(x), relay.exp(x)))
    joined = relay.exp(x) + relay.const(1.0)
    expected = relay.Function([x], relay.concatenate([joined, joined], axis=0))

    def typed(function):
        return transform.InferType()(relay.IRModule.from_expr(function))

    relay.assert_structural_equal(transform.EliminateCommonSubexpr()(twice), typed(expected))
    skips = transform.EliminateCommonSubexpr(lambda call: call.op.name == "add")(twice)
    relay.assert_structural_equal(skips, typed(sums(one, one)))


def test_functions_as_values_are_lifted():
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    inner = relay.Function([x], x + y)
    mod = transform.InferType()(relay.IRModule.from_expr(relay.Function([y], relay.Call(inner, [y]))))
    found = transform.LambdaLift()(mod)
    (name,) = [v for v in found if v.name_hint != "main"]
    assert found[name].attrs["Closure"] == 1
    data = values((2,))
    result = relay.create_executor("graph", transform.InferType()(found)).evaluate()(data).numpy()
    np.testing.assert_array_equal(result, data + data)


def test_global_functions_that_are_values_are_expanded():
    text = "def @aux(%x: int) -> int { %x }\ndef @main() -> fn (int) -> int { @aux }"
    found = main_of(text, transform.EtaExpand(expand_global_var=True))
    assert isinstance(found.body, relay.Function)
    assert isinstance(found.body.body, relay.Call)
    kept = main_of(text, transform.EtaExpand())
    assert isinstance(kept.body, relay.GlobalVar)
    boxes = """type Box[A] { Put(A, int) }
    def @aux(%x: int) -> Box[int] { Put(%x, 1) }
    def @main(%c: bool) -> fn (int) -> Box[int] { let %f = @aux; let %b = %f(2); @aux }"""
    found = main_of(boxes, transform.EtaExpand(expand_global_var=True))
    assert found.body.value.body.op.name_hint == "aux" and isinstance(found.body.body.body, relay.Function)
    text = "type Box { Put(int, bool), Empty }\ndef @main() -> fn (int, bool) -> Box { let %b = Put(1, True); Put }"
    found = main_of(text, transform.EtaExpand(expand_constructor=True))
    assert isinstance(found.body.value.op, relay.Constructor)  # it is called
    function = found.body.body
    assert [p.type_annotation.dtype for p in function.params] == ["int32", "bool"] and function.body.args == function.params
    assert isinstance(main_of(text, transform.EtaExpand(expand_global_var=True)).body.body, relay.Constructor)


def test_functions_that_lets_name_are_lifted():
    mod = relay.parse("""
def @main_lifted_0(%x: int) -> int { %x }
def @main(%x: int) -> int {
  let %a = %x + 1;
  let %f = fn (%n: int) -> int { if (%n < 1) { %a } else { %f(%n - 1) * 2 } };
  let %p = fn (%n: int, Primitive=1) -> int { %n + 1 };
  let %g = fn (%n: int) -> int { %n - 3 };
  %f(3) + %g(%x) + %p(%x)
}""")
    found = transform.LambdaLift()(transform.InferType()(mod))
    assert sorted(v.name_hint for v in found) == ["main", *(f"main_lifted_{i}" for i in range(3))]
    main = transform.InferType()(found)["main"]
    assert sum(isinstance(node, relay.Function) for node in nodes(main.body)) == 1  # what is a kernel stays
    assert int(relay.create_executor("graph", found).evaluate()(4).numpy()) == 5 * 8 + 1 + 5


def test_sizes_that_are_known_become_attributes():
    x, y = relay.var("x", shape=(2, 6)), relay.var("y", shape=(3, 4))
    z = relay.reshape(relay.tile(x, relay.const([1, 1])), relay.shape_of(relay.exp(y)))
    found = transform.DynamicToStatic()(relay.IRModule.from_expr(relay.Function([x, y], z)))["main"]
    assert found.ret_type == relay.TensorType((3, 4), "float32")
    assert [node.op.name for node in nodes(found) if isinstance(node, relay.Call)] == ["tile", "reshape"]


def test_sizes_of_which_some_are_not_known_stay():
    x, end = relay.var("x", shape=(4, 6)), relay.var("end", shape=(2,), dtype="int64")
    slices = relay.strided_slice(x, relay.const([1, 1], "int64"), end, relay.const([1, 2], "int64"))
    found = transform.DynamicToStatic()(relay.IRModule.from_expr(relay.Function([x, end], slices)))["main"]
    assert [node.op.name for node in nodes(found) if isinstance(node, relay.Call)] == ["dyn.strided_slice"]


def test_the_level_of_fusion_may_be_said():
    x = relay.var("x", shape=(2, 3))
    mod = relay.IRModule.from_expr(relay.Function([x], relay.exp(relay.tanh(x))))
    for level, fuses in ((3, [1, 2, 1]), (0, [2, 2, 1])):
        with relayc.PassContext(opt_level=level):
            assert [str(transform.FuseOps(own)(mod)["main"]).count("Primitive") for own in (-1, 0, 1)] == fuses


# ---- passes of one's own -----------------------------------------------------------------------------------------------------------------


class Seen(PassInstrument):
    def __init__(self):
        self.names = []

    def run_before_pass(self, mod, info):
        self.names.append(info.name)

    def should_run(self, mod, info):
        return info.name != "Inline"


def test_passes_of_functions_and_classes():
    @transform.function_pass(opt_level=1)
    class Wrap:
        def __init__(self, name):
            self.name = name

        def transform_function(self, function, mod, ctx):
            return relay.Function(function.params, relay.op.call(self.name, function.body))

    @transform.module_pass(opt_level=3, name="Late")
    def late(mod, ctx):
        raise AssertionError

    seen = Seen()
    x = relay.var("x", shape=(3,))
    with relayc.PassContext(opt_level=2, instruments=[seen]):
        found = transform.Sequential([transform.Inline(), Wrap("exp"), late])(relay.IRModule.from_expr(relay.Function([x], x)))
    assert seen.names == ["sequential", "Wrap"] and transform.Sequential().info.composite and not late.info.composite
    relay.assert_structural_equal(found["main"].body, relay.exp(found["main"].params[0]))
    with pytest.raises(TypeError, match="pass nothing: expected it to return a module, found None"):
        transform.module_pass(lambda mod, ctx: None, opt_level=0, name="nothing")(found)


def test_modules_with_other_functions_are_not_equal():
    x = relay.var("x", shape=(3,))
    mods = [relay.IRModule.from_expr(relay.Function([x], body)) for body in (relay.exp(x), relay.tanh(x))]
    assert not relay.structural_equal(*mods)
    assert relay.structural_equal(mods[0], relay.IRModule.from_expr(relay.Function([x], relay.exp(x))))


def test_an_axis_of_parameters_gets_any_size():
    x, w, v = relay.var("x", shape=(4, 10)), relay.var("w", shape=(3, 10)), relay.var("v", shape=(4, 1))
    mod = relay.IRModule.from_expr(relay.Function([x, w, v], relay.Tuple([relay.nn.dense(x, w), x - v])))
    found = relay.transform.FlexibleShapeDispatch(axis=1, buckets=[5, 10], input_indices=[0, 1], auto_pad=True)(mod)
    assert [str(p.checked_type) for p in found["main"].params] == [f"Tensor[{s}, float32]" for s in ("(4, ?)", "(3, ?)", "(4, 1)")]
    run = relay.create_executor("vm", found).evaluate()
    for size in (10, 7):
        a, b, c = values((4, size)), values((3, size), seed=1), values((4, 1), seed=2)
        product, difference = run(a, b, c)
        np.testing.assert_allclose(product.numpy(), a @ b.T, rtol=1e-5, atol=1e-5)  # sums of 10 products in another order
        np.testing.assert_array_equal(difference.numpy(), a - c)
    fixed = relay.transform.FlexibleShapeDispatch(axis=1, buckets=[5])(relay.IRModule.from_expr(relay.reshape(x, (5, 8))))
    with pytest.raises(ValueError, match=r"as many elements as tensor<4x7xf32>"):
        relay.create_executor("vm", fixed).evaluate()(values((4, 7)))


def test_a_clip_to_all_of_an_integer_type_is_dropped_where_integers_were_scaled():
    x, one = relay.var("x", shape=(3,), dtype="int32"), relay.const(1.0)
    scaled = relay.qnn.op.requantize(x, one, relay.const(0), one, relay.const(0), out_dtype="uint8")
    found = [relay.clip(scaled, 0, 255), relay.clip(scaled, 1, 255), relay.clip(scaled, 0, 254), relay.clip(x, -(2**31), 2**31 - 1)]
    mod = relay.transform.Legalize()(relay.IRModule.from_expr(relay.Function([x], relay.Tuple(found))))
    assert [field.op.name for field in mod["main"].body.fields] == ["qnn.requantize", "clip", "clip", "clip"]


def test_sizes_without_types_become_attributes():
    """The rank of the result, and a branch on an integer, are known after folding alone."""
    x, y = relay.var("x", "float32"), relay.var("y", shape=(2, 3))
    shape = relay.shape_of(y)
    full = relay.full(x, relay.strided_slice(shape, [0], relay.shape_of(shape)), "float32")
    found = transform.DynamicToStatic()(relay.IRModule.from_expr(relay.Function([x, y], full)))["main"].body
    assert found.op.name == "full" and tuple(found.attrs["shape"]) == (2, 3)
    branch = relay.If(relay.const(0), relay.reshape(y, (6,)), relay.reshape(y, (3, 2)))
    found = transform.DynamicToStatic()(relay.IRModule.from_expr(relay.Function([y], branch)))["main"].body
    assert tuple(found.attrs["newshape"]) == (3, 2)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_images_are_resized_to_sizes_that_the_program_computes(layout):
    x, size = relay.var("x", shape=(1, 3, 4, 5)), relay.var("size", shape=(2,), dtype="float32")
    late = relay.Function([x, size], relay.image.resize2d(x, size, None, layout, "linear", "align_corners"))
    data = values((1, 3, 4, 5))
    first, second = (2, 3) if layout == "NCHW" else (1, 2)
    sizes = (2 * data.shape[first], 3 * data.shape[second] - 1)
    bound = transform.DynamicToStatic()(relay.IRModule.from_expr(relay.bind_params_by_name(late, {"size": np.array(sizes, "float32")})))
    assert bound["main"].body.op.name == "image.resize2d" and tuple(bound["main"].body.attrs["size"]) == sizes
    found = relay.create_executor("graph").evaluate(late)(data, np.array(sizes, "float32")).numpy()
    expected = relay.create_executor("graph", bound).evaluate()(data).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)

    scales = [relay.var(name, "float32") for name in ("h", "w")]
    enlarged = relay.Function([x, *scales], relay.nn.upsampling(x, *scales, layout=layout, method="bilinear", align_corners=True))
    found = relay.create_executor("graph").evaluate(enlarged)(data, np.float32(2), np.float32(3)).numpy()
    fixed = relay.Function([x], relay.nn.upsampling(x, 2, 3, layout=layout, method="bilinear", align_corners=True))
    np.testing.assert_allclose(found, relay.create_executor("graph").evaluate(fixed)(data).numpy(), rtol=1e-5, atol=1e-6)


def test_passes_know_their_names_and_print(capsys):
    x = relay.var("x", shape=(3,))
    mod = relay.IRModule.from_expr(relay.Function([x], relay.exp(x)))

    @transform.module_pass(opt_level=0)
    class Twice:
        """Of a class."""

        def __init__(self, times):
            self.times = times

        def transform_module(self, mod, ctx):
            return mod

    made = Twice(3)
    assert made.name == "Twice" and repr(made) == "<pass Twice>" and made.times == 3 and Twice.__doc__ == "Of a class."
    with pytest.raises(AttributeError):
        made.other  # noqa: B018 # it is read for its error
    for decorate in (transform.module_pass, transform.function_pass):
        with pytest.raises(ValueError, match="expected the opt_level of the pass"):
            decorate(lambda mod, ctx: mod, name="late")
    assert relay.structural_equal(transform.PrintIR("here")(mod), mod)
    assert capsys.readouterr().err == f"PrintIR(here):\n{mod.astext(show_meta_data=False)}\n"

    @passes.pass_instrument
    class Counts:
        def run_before_pass(self, mod, info):
            names.append(info.name)

    names = []
    with relayc.PassContext(instruments=[Counts()]):
        transform.Inline()(mod)
    assert names == ["Inline"]
    with pytest.raises(NotImplementedError):
        passes.Pass().transform(mod, None)


def test_places_of_generated_text():
    x = relay.var("x", shape=(3,))
    found = transform.AnnotateSpans()(relay.IRModule.from_expr(relay.Function([x], relay.exp(x))))["main"].body
    assert str(found.span) == "GeneratedSource:3:3"
