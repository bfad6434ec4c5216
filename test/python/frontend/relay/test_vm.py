"""Relay's virtual machine."""

import numpy as np
import pytest

from relayc import relay
from relayc.relay import vm

X, Y = np.arange(3, dtype="float32"), np.array([2, -1, 4], "float32")
SOURCE = """
def @main(%x: Tensor[(3), float32], %y: Tensor[(3), float32]) { (%x - %y, (@twice(%x),)) }
def @twice(%x: Tensor[(3), float32]) -> Tensor[(3), float32] { %x * 2f }
def @listed(%x: Tensor[(3), float32]) -> List[Tensor[(3), float32]] { Cons(@twice(%x), Cons(%x, Nil)) }
"""


@pytest.fixture(scope="module")
def executable():
    return vm.compile(relay.parse(SOURCE, init_module=relay.Prelude().mod), "llvm")


def test_inputs_are_set_in_order_by_name_and_one_by_one(executable):
    machine = vm.VirtualMachine(executable, "cpu")
    assert [machine.get_input_index(name) for name in ("x", "y", "z")] == [0, 1, -1]
    for _ in range(2):
        for found in (machine.invoke("main", X, Y), machine.run(y=Y, x=X), machine.invoke("main")):
            np.testing.assert_array_equal(found[0], X - Y)
        machine.set_input("main", X, y=Y)
    machine.set_one_input("main", 0, Y)
    machine.set_one_input("main", "y", X)
    np.testing.assert_array_equal(machine.invoke("main")[0], Y - X)
    machine.set_one_input("main", x=X)
    machine.invoke_stateful("main")
    difference, twice = machine.get_outputs()
    np.testing.assert_array_equal(difference, X - X)
    np.testing.assert_array_equal(twice, 2 * X)
    out = [np.empty(3, "float32"), np.empty(3, "float32")]
    machine.invoke_with_outputs("main", {"x": X, "y": Y}, out)
    np.testing.assert_array_equal(out, [X - Y, 2 * X])
    assert len(machine.benchmark("cpu", X, Y, repeat=2, number=1).results) == 2
    assert len(machine.benchmark("cpu", X, func_name="twice").results) == 5
    np.testing.assert_array_equal(machine.get_outputs(), [2 * X])


def test_other_functions_are_invoked(executable):
    machine = vm.VirtualMachine(executable, ["cpu"])
    np.testing.assert_array_equal(machine.invoke("twice", X), 2 * X)
    first, rest = machine.invoke("listed", X)
    np.testing.assert_array_equal([first, rest[0]], [2 * X, X])
    assert executable.globals[-3:] == ["main", "twice", "listed"]


def test_wrong_inputs(executable):
    machine = vm.VirtualMachine(executable, "cpu")
    with pytest.raises(TypeError, match="main: expected 2 argument"):
        machine.invoke("main", X)
    for args, named, count in (((X,), {"x": X}, 2), ((X, Y, X), {}, 3), ((), {"y": X}, 1)):
        with pytest.raises(TypeError, match=rf"main: expected 2 argument\(s\), found {count}"):
            machine.set_input("main", *args, **named)
    for args, named in (((), {}), ((0, X), {"x": X}), ((), {"x": X, "y": X})):
        with pytest.raises(TypeError, match=f"found {len(args)} values and {len(named)} names"):
            machine.set_one_input("main", *args, **named)
    with pytest.raises(ValueError, match="zip"):
        machine.invoke_with_outputs("main", {"x": X, "y": Y}, [np.empty(3, "float32")])
    with pytest.raises(ValueError, match="quantum"):
        vm.VirtualMachine(executable, ["cpu", "quantum"])
    with pytest.raises(TypeError, match="main: expected an argument out of x, y, found 'z'"):
        machine.set_one_input("main", "z", X)
    with pytest.raises(TypeError, match="main: expected one argument with its name or place"):
        machine.set_one_input("main", X)
    with pytest.raises(KeyError, match="no function @none"):
        machine.invoke("none")
    with pytest.raises(RuntimeError, match="expected a program that has been lowered"):
        vm.VMCompiler().get_exec()


def test_programs_are_saved(executable):
    code, lib = executable.save()
    machine = vm.VirtualMachine(vm.Executable.load_exec(code, lib), "cpu")
    np.testing.assert_array_equal(machine.invoke("main", X, Y)[0], X - Y)
    np.testing.assert_array_equal(machine.invoke("listed", X)[1][0], X)


def test_a_compiler_optimizes_with_parameters():
    x, w = relay.var("x", shape=(3,)), relay.var("w", shape=(3,))
    compiler = vm.VMCompiler()
    compiler.set_params({"w": X})
    assert compiler.get_params() == {"w": X}
    found, params = compiler.optimize(relay.IRModule.from_expr(x * (w + w)), "llvm", params={"w": Y})
    assert [v.name_hint for v in relay.free_vars(found["main"].body)] == ["x"] and params["w"] is Y
    np.testing.assert_array_equal(found["main"].body.args[1].data, 2 * Y)


def test_large_constants_are_bound_late(tmp_path):
    x = relay.var("x", shape=(3,))
    weights, small = np.array([5, -3, 2], "float32"), np.array(2, "float32")
    executable = vm.compile(relay.IRModule.from_expr(x * relay.const(weights) + relay.const(small)))
    executable.move_late_bound_consts(tmp_path / "consts", byte_limit=12)
    executable.mod.export_library(tmp_path / "program")
    assert b"b64ndarrays" not in (tmp_path / "program").read_bytes()
    loaded = vm.Executable.load(tmp_path / "program")
    with pytest.raises(RuntimeError, match=r"expected constants that are bound .* found none for const_0"):
        vm.VirtualMachine(loaded).run(X)
    loaded["load_late_bound_consts"](tmp_path / "consts")
    np.testing.assert_array_equal(vm.VirtualMachine(loaded).run(X), X * weights + 2)
    consts = loaded.get_late_bound_consts(12)
    assert list(consts) == ["const_0"]
    more = loaded.get_late_bound_consts(4)
    assert loaded.get_late_bound_consts(4) == {} and list(more) == ["const_1"]
    loaded.load_late_bound_consts_from_map({"const_0": -consts["const_0"], **more})
    np.testing.assert_array_equal(vm.VirtualMachine(loaded).run(X), 2 - X * weights)
    with pytest.raises(KeyError, match="no function 'run'"):
        loaded["run"]
