"""Names of generated C code, supplies of names, and the executor and runtime of a build."""

import numpy as np
import pytest

from relayc import relay
from relayc.relay import names
from relayc.relay.backend import Executor, Runtime


@pytest.mark.parametrize(
    ("name", "function", "variable", "constant"),
    [
        ("TVM_Conv_out", "TVMConvOut", "tvm_conv_out", "TVM_CONV_OUT"),
        ("TVMGen_MODEL_run2", "TVMGenModelRun", "tvmgen_model_run2", "TVMGEN_MODEL_RUN2"),
    ],
)
def test_styles(name, function, variable, constant):
    assert names.to_c_function_style(name) == function
    assert names.to_c_variable_style(name) == variable
    assert names.to_c_constant_style(name) == constant


def test_prefixes_and_characters():
    assert names.prefix_name(["Device", "open"]) == "TVM_Device_open"
    assert names.prefix_generated_name("net") == "TVMGen_net"
    assert names.sanitize_name("input:0/é") == "input_0__"
    assert [names.mangle_module_name(name) for name in ("net", "", None)] == ["tvmgen_net", "tvmgen", "tvmgen"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: names.to_c_function_style("Gen_x"), "Function not TVM prefixed: 'Gen_x'"),
        (lambda: names.to_c_variable_style(""), "Variable name is empty"),
        (lambda: names.prefix_name(""), "Name is empty"),
        (lambda: names.prefix_name([]), "Name segments empty"),
        (lambda: names.prefix_generated_name(["a", ""]), "Name segment is empty"),
        (lambda: names.sanitize_name(""), "Name is empty"),
        (lambda: names.mangle_module_name("é"), "expected ASCII characters, found 'é'"),
    ],
)
def test_wrong_names(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_name_supply():
    supply = names.NameSupply("net")
    assert supply.reserve_name("x.y") == "net_x.y"
    assert [supply.fresh_name("x.y") for _ in range(3)] == ["net_x_y", "net_x_y_1", "net_x_y_2"]
    assert supply.fresh_name("x_y", add_underscore=False) == "net_x_y3"
    assert supply.fresh_name("net_x_y", add_prefix=False) == "net_x_y_4"
    assert supply.contains_name("x_y_1") and not supply.contains_name("x_y_1", add_prefix=False) and not supply.contains_name("z")


def test_supply_of_global_variables_of_a_module():
    x = relay.var("x", shape=(2,))
    mod = relay.IRModule({"f": relay.Function([x], x)})
    supply = names.GlobalVarSupply(mod)
    assert supply.unique_global_for("f", add_prefix=False) is mod.get_global_var("f")
    assert supply.unique_global_for("f").name_hint == "tvmgen_default_f"
    assert supply.unique_global_for("f") is supply.unique_global_for("f")
    assert supply.fresh_global("f", add_prefix=False).name_hint == "f_1"
    assert names.GlobalVarSupply(mod.with_attr("mod_name", "net")).fresh_global("f").name_hint == "net_f"
    supply.reserve_global(mod.get_global_var("f"))
    with pytest.raises(ValueError, match="@f: expected a name that no other variable has"):
        supply.reserve_global(relay.GlobalVar("f"))
    supply.reserve_global(relay.GlobalVar("f"), allow_conflict=True)


def test_executor_and_runtime():
    executor = Executor("aot", {"workspace-byte-alignment": 16})
    assert (str(executor), executor["link-params"], executor["workspace-byte-alignment"]) == ("aot", True, 16)
    assert "unpacked-api" not in executor and executor != Executor("aot") and Runtime("crt") == Runtime("crt")
    assert Executor.list_registered() == ["aot", "graph"] and Runtime.list_registered() == ["cpp", "crt"]
    assert Runtime.list_registered_options("cpp") == {"system-lib": "runtime.BoxBool"}
    assert Executor.list_registered_options(executor)["workspace-byte-alignment"] == "runtime.BoxInt"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Executor("tree"), 'Executor "tree" is not defined: expected one of aot, graph'),
        (lambda: Runtime("cpp", {"lib": True}), 'Attribute "lib" is not available on this Runtime: expected one of system-lib'),
        (lambda: Runtime("cpp", {"system-lib": 1}), 'should have type "runtime.BoxBool" but instead found "runtime.BoxInt"'),
        (lambda: Executor.list_registered_options("tree"), 'Executor "tree" is not defined'),
    ],
)
def test_wrong_choices(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_build_takes_executors_and_refuses_interfaces_that_modules_do_not_have():
    x = relay.var("x", shape=(3,))
    mod = relay.IRModule.from_expr(relay.exp(x))
    made = relay.build(mod, "llvm", executor=Executor("aot", {"interface-api": "packed"}), runtime=Runtime("crt"))["default"]("cpu")
    value = np.array([-1.5, 0, 2], "float32")
    made.set_input("x", value)
    made.run()
    np.testing.assert_allclose(made.get_output(0).numpy(), np.exp(value), rtol=1e-6)
    for executor, runtime, message in (
        (Executor("aot", {"interface-api": "c"}), None, "found an executor with functions in C style"),
        (Executor("aot", {"unpacked-api": True}), None, "found an executor with functions in C style"),
        (None, Runtime("cpp", {"system-lib": True}), "found a runtime with system-lib"),
    ):
        with pytest.raises(ValueError, match=message):
            relay.build(mod, "llvm", executor=executor, runtime=runtime)


def test_parameters_come_back_as_they_were_saved():
    given = {"w": np.arange(6, dtype="float32").reshape(2, 3), "n": np.array(-7, "int64")}
    found = relay.load_param_dict(bytearray(relay.save_param_dict(given)))
    assert found.keys() == given.keys()
    for name, value in given.items():
        assert found[name].numpy().dtype == value.dtype
        np.testing.assert_array_equal(found[name].numpy(), value)


def test_an_expression_may_call_main():
    x = relay.var("x", shape=(4,))
    mod = relay.IRModule.from_expr(relay.Function([x], x * relay.const(3.0)))
    mod["next"] = relay.Function([x], relay.Call(mod.get_global_var("main"), [x]) + relay.const(1.0))
    value = np.array([1, -2, 5, 0.5], "float32")
    calls = relay.Call(mod.get_global_var("main"), [relay.Call(mod.get_global_var("next"), [relay.const(value)])])
    for kind in ("graph", "vm", "debug"):
        np.testing.assert_array_equal(relay.create_executor(kind, mod).evaluate(calls).numpy(), (value * 3 + 1) * 3)
    assert mod.get_global_var("main") in mod.functions


def test_types_are_equal_where_kinds_and_constraints_are():
    a, b = relay.TypeVar("a"), relay.TypeVar("b")
    shape = relay.TypeVar("s", relay.Kind.Shape)
    broadcast, identity = (relay.TypeRelation(f, [a], 1) for f in (max, min))
    assert relay.FuncType([], a, [a]) == relay.FuncType([], b, [b]) != relay.FuncType([], shape, [shape])
    assert relay.FuncType([a], a, [a], [broadcast]) == relay.FuncType([b], b, [b], [relay.TypeRelation(max, [b], 1)])
    assert relay.FuncType([a], a, [a], [broadcast]) != relay.FuncType([a], a, [a])
    assert relay.FuncType([a], a, [a], [broadcast]) != relay.FuncType([a], a, [a], [identity])
    assert relay.TypeRelation(max, [a, b], 1) != relay.TypeRelation(max, [a, b], 2)


def test_attributes_that_are_maps_keep_variables_and_strings():
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    value = np.array([3, -7], "float32")
    function = relay.Function([x, y], x + y).with_attr("bound", {y: relay.const(value), "by name": (1, 2), "t": {}})
    text = function.astext()
    back = relay.parse_expr(text)
    found = back.attrs["bound"]
    assert next(iter(found)) is back.params[1] and found["by name"] == (1, 2) and found["t"] == {}
    np.testing.assert_array_equal(found[back.params[1]].data.numpy(), value)
    assert relay.structural_equal(function, back) and relay.structural_hash(function) == relay.structural_hash(back)
    with pytest.raises(relay.ParseError, match="expected a string or a variable as the key of a map, found '1'"):
        relay.parse_expr('#[version = "0.0.5"]\nfn (%x, m={1: 2}) { %x }')


def test_parts_of_a_build():
    x = relay.var("x", shape=(3,))
    built = relay.build(relay.IRModule.from_expr(relay.Function([x], relay.exp(x))), "llvm")
    assert built.get_graph_json() == built.graph_json and built.get_params() == built.params
    with pytest.raises(KeyError, match="expected the module 'default', found 'other'"):
        built["other"]
    assert built.get_lib().function_names() == built.lib.function_names()
    relay.create_executor("graph", device="cpu")
    for device in ("cpux", 3):
        with pytest.raises((ValueError, TypeError), match="device"):
            relay.create_executor("graph", device=device)


def test_names_of_global_variables_without_a_module():
    supply = names.GlobalVarSupply()
    assert [supply.fresh_global("a").name_hint for _ in range(2)] == ["a", "a_1"]
    shared = names.NameSupply("net")
    shared.fresh_name("a")
    assert names.GlobalVarSupply(shared).fresh_global("a").name_hint == "net_a_1"
