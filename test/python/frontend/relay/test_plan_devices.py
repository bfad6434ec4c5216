"""PlanDevices: where values are, where they are copied, and that the plan can be read again."""

import numpy as np
import pytest
import tvm_ffi
from oracle import values

import relayc
from relayc import relay
from relayc.frontend.relay.ast.devices import DEVICE_TYPES
from relayc.frontend.relay.passes.device_domains import Domain, Domains

CPU, GPU = relay.VirtualDevice("cpu", "llvm"), relay.VirtualDevice("cuda", "cuda")
CONFIG = relay.CompilationConfig.of(["llvm", "cuda"], default_type=2)
on_device, plan = relay.op.annotation.on_device, relay.transform.PlanDevices(CONFIG)


def planned(function):
    return plan(relay.IRModule.from_expr(function))


def places(mod):
    """Where the calls of operators are, by the names of these; and the devices of parameters and the result."""
    main = mod["main"]
    found = relay.analysis.planned_devices(main)
    calls = {
        node.op.name: device.device for node, device in found.items() if isinstance(node, relay.Call) and isinstance(node.op, relay.Op)
    }
    return calls, [p.virtual_device_.device for p in main.params], main.virtual_device_.device


def test_operands_follow_their_operator_and_are_copied_where_annotations_allow_it():
    a, b, c = (relay.var(name, shape=(2, 3)) for name in "abc")
    mod = planned(relay.Function([a, b, c], on_device(a + b, CPU) * relay.tanh(c)))
    calls, params, result = places(mod)
    assert calls == {"add": "cpu:0", "on_device": "cpu:0", "device_copy": "cuda:0", "tanh": "cuda:0", "multiply": "cuda:0"}
    assert params == ["cpu:0", "cpu:0", "cuda:0"] and result == "cuda:0"
    relay.assert_structural_equal(plan(mod), mod)
    data = [values((2, 3)) for _ in range(3)]
    found = relay.create_executor("graph", mod).evaluate()(*data).numpy()
    np.testing.assert_allclose(found, (data[0] + data[1]) * np.tanh(data[2]), rtol=1e-5)


def test_devices_flow_through_functions_and_their_parameters():
    x, y, p, q, f, g = (relay.var(name, shape=(3,)) if name in "xypq" else relay.Var(name) for name in "xypqfg")
    called = relay.Function([g, q], g(q))
    body = relay.Let(f, relay.Function([p], relay.exp(on_device(p, CPU))), called(f, y) + x)
    calls, params, _ = places(planned(relay.Function([x, y], body)))
    assert params == ["cuda:0", "cpu:0"] and calls["add"] == "cuda:0"


def test_fields_are_copied_and_not_tuples():
    x = relay.var("x", shape=(4, 2))
    halves = relay.split(x, 2).astuple()
    mod = planned(relay.Function([x], relay.exp(relay.TupleGetItem(on_device(halves, CPU), 1))))
    copies = [n for n in relay.analysis.planned_devices(mod["main"]) if isinstance(n, relay.Call) and n.op.name == "device_copy"]
    assert [copy.checked_type.concrete_shape for copy in copies] == [(2, 2)]


def test_what_two_devices_reach_is_where_the_first_one_has_it():
    """An operator itself is nowhere."""
    x = relay.var("x", shape=(2,))
    shared = relay.exp(x)
    found = relay.analysis.planned_devices(relay.Tuple([on_device(shared, CPU, True), on_device(relay.tanh(shared), GPU, True)]))
    assert found[shared] == CPU and not any(isinstance(node, relay.Op) for node in found)


def test_what_two_devices_use_is_copied_once_for_the_other():
    a, b, c = (relay.var(name, shape=(2,)) for name in "abc")
    mod = planned(relay.Function([a, b, c], on_device(a + b, CPU) - on_device(b * c, GPU)))
    assert mod["main"].params[1].virtual_device_ == CPU and mod["main"].params[2].virtual_device_ == GPU
    copies = [n for n in relay.analysis.planned_devices(mod["main"]) if isinstance(n, relay.Call) and n.op.name == "device_copy"]
    assert [copy.attrs.dst_virtual_device for copy in copies] == [GPU, GPU]


def test_copies_of_copies_are_one():
    x = relay.var("x", shape=(2,))
    there, back = ({"src_virtual_device": a, "dst_virtual_device": b} for a, b in ((CPU, GPU), (GPU, CPU)))
    copied = relay.op.call("device_copy", relay.op.call("device_copy", x, **there), **back)
    assert places(planned(relay.Function([x], copied))) == ({}, ["cpu:0"], "cpu:0")


def test_shapes_are_on_the_host():
    x = relay.var("x", shape=(2, 3))
    _, params, result = places(planned(relay.Function([x], relay.op.vm.shape_of(on_device(x, GPU, constrain_result=True)))))
    assert params == ["cuda:0"] and result == "cpu:0"


def test_contradictions_are_errors():
    x = relay.var("x", shape=(2,))
    fixed = [on_device(relay.exp(x), device, constrain_result=True) for device in (CPU, GPU)]
    with pytest.raises(relayc.RelayError, match=r"PlanDevices: expected cpu:0, found cuda:0, for the expression"):
        planned(relay.Function([x], relay.Tuple([relay.If(relay.const(True), *fixed)])))

    y, z = relay.var("y", shape=(2,)), relay.var("z", shape=(2,))
    f = relay.Function([y], on_device(relay.exp(y), CPU, constrain_result=True))
    g = relay.Function([z], on_device(relay.exp(z), GPU, constrain_result=True))
    with pytest.raises(relayc.RelayError, match=r"expected fn \(.*\) -> cpu:0, found fn \(.*\) -> cuda:0, for the expression"):
        planned(relay.Function([x], relay.If(relay.const(True), f, g)(x)))


def test_functions_say_where_their_results_are():
    x = relay.var("x", shape=(2,))
    function = relay.Function([x], relay.exp(x))
    function.virtual_device_ = CPU
    assert places(planned(function)) == ({"exp": "cpu:0"}, ["cpu:0"], "cpu:0")


def test_the_value_of_a_let_is_where_its_body_is_if_nothing_else_says_it():
    x, y = relay.var("x", shape=(2,)), relay.var("y")
    body = relay.Let(y, relay.exp(relay.const([1.0, 2.0])), on_device(relay.tanh(x), CPU, constrain_result=True))
    assert places(planned(relay.Function([x], body)))[0]["exp"] == "cpu:0"


def test_data_and_what_is_taken_from_it_are_on_one_device():
    mod = relay.parse("""type Box { Put(Tensor[(2), float32], Tensor[(2), float32]), Empty }
    def @main(%x: Tensor[(2), float32], %y: Tensor[(2), float32]) -> Tensor[(2), float32] {
      match (Put(tanh(%x), %y)) { Put(%a, %b) => exp(%a), Empty => zeros(shape=[2], dtype="float32") } }""")
    (x, y), match = mod["main"].params, mod["main"].body
    put = relay.Call(match.data.op, [on_device(match.data.args[0], CPU, constrain_result=True), y])
    mod["main"] = relay.Function([x, y], relay.Match(put, match.clauses))
    calls, params, result = places(plan(mod))
    assert set(calls.values()) == {"cpu:0"} and params == ["cpu:0"] * 2 and result == "cpu:0"
    # The device is that of what the data are, or of what is taken from them.
    first, other = match.clauses
    taken = relay.Clause(first.lhs, relay.exp(on_device(first.rhs.args[0], CPU)))
    mod["main"] = relay.Function([x, y], relay.Match(match.data, [taken, other]))
    calls, params, result = places(plan(mod))
    assert set(calls.values()) == {"cpu:0"} and params == ["cpu:0"] * 2 and result == "cpu:0"


def test_functions_in_data_and_tuples_are_on_the_device_of_these():
    mod = relay.parse("""type Box { Put(fn (float32) -> float32) }
    def @main(%x: float32) -> float32 {
      let %g = match (Put(fn (%v: float32) -> float32 { exp(%v) })) { Put(%f) => %f };
      let %p = (%g, %x);
      let %h = %p.0;
      %h(%x) }""")
    calls, params, result = places(plan(mod))
    assert set(calls.values()) == {"cuda:0"} and params == ["cuda:0"] and result == "cuda:0"


def test_memory_is_where_its_attribute_says_and_its_sizes_on_the_host():
    text = """#[version = "0.0.5"]
    extern type Storage
    def @main(%n: int64, %s: int64) { memory.alloc_storage(%n, %s, %n) }"""
    mod = relay.parse(text)
    made = mod["main"].body
    mod["main"] = relay.Function(mod["main"].params, made.replace(attrs=relay.Attrs({**made.attrs, "virtual_device": GPU})))
    assert places(plan(mod))[1:] == (["cpu:0"] * 2, "cuda:0")


def test_annotations_that_fix_nothing_join_what_agrees():
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    free = on_device(relay.exp(on_device(x, CPU, constrain_result=True)), CPU, constrain_body=False)
    calls, params, result = places(planned(relay.Function([x, y], free)))
    assert calls["exp"] == "cpu:0" and params[0] == "cpu:0" and result == "cpu:0"


def test_domains_are_the_same_only_where_their_devices_agree():
    domains = Domains(CONFIG)
    cpu, gpu, free, other = (Domain(CONFIG.canonical(device)) for device in (CPU, GPU, relay.VirtualDevice(), relay.VirtualDevice()))
    fixed = Domain(relay.VirtualDevice("cpu:0", "llvm", "fast"))
    assert domains.is_fixed(fixed) and not domains.is_fixed(cpu) and domains.unify(cpu, cpu) and not domains.unify(cpu, gpu)
    assert domains.is_fixed(Domain(parts=(fixed, fixed))) and not domains.is_fixed(Domain(parts=(fixed, cpu)))
    part = Domain(parts=(cpu, free))
    assert (
        domains.text(part) == "fn (cpu:0) -> any device"
        and domains.text(Domain(parts=(part, gpu))) == "fn (fn (cpu:0) -> any device) -> cuda:0"
    )
    assert not domains.unify(part, free) and not domains.unify(part, Domain(parts=(cpu, free, free)))
    assert not domains.unify(part, Domain(parts=(gpu, other)))
    domains.unify_if_possible(cpu, gpu)
    assert domains.find(cpu) is not domains.find(gpu)
    # What was joined before a contradiction was found is as it was.
    domains = Domains(CONFIG)
    domains.unify_if_possible(Domain(parts=(free, cpu)), Domain(parts=(gpu, gpu)))
    assert domains.result(free).is_free
    domains.unify_if_possible(Domain(parts=(free, cpu)), Domain(parts=(gpu, other)))
    assert domains.result(free) == GPU and domains.result(other) == CPU
    assert domains.collapse(gpu, Domain(parts=(free, free))) and not domains.collapse(gpu, Domain(parts=(free, cpu)))
    domains.default_function(whole := Domain(parts=(Domain(), Domain())))
    assert domains.text(whole) == "fn (cuda:0) -> cuda:0"


def test_memory_scopes_are_joined():
    plain, fast = relay.VirtualDevice("cpu"), relay.VirtualDevice("cpu", memory_scope="fast")
    assert plain.join(fast) == fast and fast.join(relay.VirtualDevice("cpu:0", None, "slow")) is None
    assert relay.VirtualDevice().or_else(fast) == fast and GPU.or_else(fast) == GPU
    assert CONFIG.canonical(fast) == relay.VirtualDevice("cpu", "llvm", "fast") and CONFIG.default == GPU
    with pytest.raises(ValueError, match="expected a target for devices of type 10, found llvm, cuda"):
        relay.CompilationConfig.of(["llvm", "cuda"], 10)


def test_plans_are_text():
    a = relay.var("a", shape=(2,))
    mod = planned(relay.Function([a], relay.tanh(on_device(relay.exp(a), CPU))))
    again = relay.parse(mod.astext())
    relay.assert_structural_equal(again, mod)
    assert again["main"].virtual_device_ == GPU and again["main"].params[0].virtual_device_ == CPU
    other = relay.parse(mod.astext().replace('"memory_scope": ""', '"memory_scope": "fast"', 1))
    assert not relay.structural_equal(other, mod)


def test_values_in_normal_form_say_where_they_are():
    a = relay.var("a", shape=(2,))
    body = relay.tanh(on_device(relay.exp(a + a), CPU, constrain_result=True))
    lets = relay.transform.ToANormalForm()(relay.IRModule.from_expr(relay.Function([a], body)))["main"].body
    devices = []
    while isinstance(lets, relay.Let):
        is_said = isinstance(lets.value, relay.Call) and lets.value.op.name == "on_device"
        devices.append(
            (lets.value.args[0] if is_said else lets.value).op.name + (f" on {lets.value.attrs.virtual_device.device}" if is_said else "")
        )
        lets = lets.body
    assert devices == ["add on cpu:0", "exp on cpu:0", "tanh"]


def test_spans_count_expressions():
    a = relay.var("a", shape=(2,))
    mod = relay.transform.CapturePostDfsIndexInSpans()(relay.IRModule.from_expr(relay.Function([a], relay.exp(a) + a)))
    body = mod["main"].body
    assert [body.args[1].span.line, body.args[0].span.line, body.span.line, mod["main"].span.line] == [0, 3, 4, 5]


@pytest.mark.parametrize("name", DEVICE_TYPES)
def test_devices_have_the_numbers_of_dlpack(name):
    assert relay.VirtualDevice(name).device_type == tvm_ffi.device(name).dlpack_device_type()


def test_devices_of_annotations():
    x = relay.var("x", shape=(2,))
    virtual = relay.annotation.on_device(x, "cuda:1").attrs.virtual_device
    assert (virtual.device_type_int, virtual.virtual_device_id, virtual.target) == (2, 1, None)
    free = relay.annotation.on_device(x, "cuda", constrain_result=False, constrain_body=False).attrs.virtual_device
    assert free.is_free and (free.device_type_int, free.virtual_device_id) == (-1, -1)
    for made in (lambda: relay.annotation.on_device(x, "bogus"), lambda: relay.op.device_copy(x, "cpu", "bogus")):
        with pytest.raises(ValueError, match=r"device: expected one of cpu, cuda, .*, found 'bogus'"):
            made()
