"""Programs as plain data, written by hand: as records of a file, as graphs at sizes, and called step by step. Nothing is compiled."""

import json
from dataclasses import replace

import numpy as np
import pytest

from relayc.runtime.artifact import (
    Allocate,
    Artifact,
    Branch,
    BufferRef,
    Define,
    EqualSizes,
    Give,
    KernelInfo,
    Loop,
    Move,
    PackedCall,
    ParameterInfo,
    ProgramCall,
    ProgramInfo,
    Step,
    TensorSpec,
    is_host_dtype,
    is_object_dtype,
    nested,
    numpy_dtype,
    walk,
)
from relayc.runtime.graph import NOP, Entry, parse_graph, program_graph
from relayc.runtime.late import Late
from relayc.runtime.native_info import Constructor, DataType, Link, NativeFunctionInfo, NativeInfo, ValueType
from relayc.runtime.profile import SiteWork
from relayc.runtime.records import as_plain, program_fields, program_record
from relayc.runtime.registry import register_func
from relayc.runtime.stepwise import Stepwise, call_sites, depends_on_sizes_only
from relayc.runtime.stepwise_memory import HostMemory
from relayc.runtime.tensor import borrowed
from relayc.symbolic import symbol

N = symbol("n")


def spec(*shape, dtype="float32", name=""):
    return TensorSpec(name, shape, dtype)


def at(space, tensor, offset=0, index=0):
    return BufferRef(space, index, offset, tensor)


def kernel(name, **changes):
    return replace(KernelInfo(name, (), (), ("add", "nn.relu"), (), 6, 24, "general"), **changes)


# ---- records


def test_programs_of_all_nodes_come_back_from_their_records():
    flag, x = spec(dtype="bool"), spec(N, 3, name="x")
    step = Step("k", (at("input", x),), (at("arena", x, 4 * N),), ("first", "second"), (N + 1, 7))
    call = ProgramCall("g", (at("heap", x, N, 2),), (at("output", x),), 64 * N, ("node",), (2 * N,), 3, (1, 2), ("m",))
    nodes = (
        step,
        PackedCall("relayc.host.f", (at("input", x),), (at("output", x),), ("third",)),
        Branch(EqualSizes(((N, 3), (2 * N, N + 3))), (step, call), (Branch(at("arena", flag), (), (step,), ("b",)),), ("c",)),
        Loop((step,), at("arena", flag, 8), (call, Define("m", at("arena", spec(2, dtype="int64")), 1)), ("d",)),
        Allocate(2, 12 * N),
        Move((1, 2), (2, 1), ("m",), (N * 5,)),
        Give((1,), (N,)),
    )
    program = ProgramInfo("f", (x,), (spec(N, 3, name="y"),), nodes, True, 9, ("n",), 128 * N, (0,), ("m",), (("n", 4),))
    info = KernelInfo("k", (x,), (x,), ("add",), ("first",), 2 * N, 12 * N, "general lanes=4", 3 * N, ("n",), ("mma: no product",))
    kinds = ValueType("tuple", parts=(ValueType("tensor", "float32", (None, 3)), ValueType("data", "List", parts=(ValueType("var", "t"),))))
    native = NativeInfo(
        (NativeFunctionInfo("f", (("a", kinds),), kinds, True),),
        (DataType("List", ("t",), (Constructor("Cons", 0, (kinds,)), Constructor("Nil", 1, ()))),),
        (Link("kernel", "k", 5, (kinds,)),),
        True,
        False,
    )
    artifact = Artifact(
        {},
        None,
        (program, replace(program, name="g", public=False, steps=())),
        (info, replace(info, own_flops=None)),
        np.zeros(0, np.uint8),
        ranges={"n": (1, 8)},
        target="cpu -mcpu=x",
        precision="bf16",
        device="cuda",
        permissions=("amx",),
        strings=("", "text"),
        parameters=(ParameterInfo(spec(4, name="w"), 64),),
        signature="{}",
        native=native,
    )
    text = json.dumps(program_record(artifact), default=as_plain)
    fields = program_fields(json.loads(text))
    assert fields == {name: getattr(artifact, name) for name in fields}
    assert set(fields) == set(program_record(artifact))
    without = json.loads(text) | {"native": None}
    del without["signature"]
    assert program_fields(without)["native"] is None and program_fields(without)["signature"] == ""
    assert [type(node).__name__ for node in walk(nodes)] == [
        *("Step", "PackedCall", "Branch", "Step", "ProgramCall", "Branch", "Step"),
        *("Loop", "Step", "ProgramCall", "Define", "Allocate", "Move", "Give"),
    ]
    assert nested(step) == () and nested(nodes[3]) == ((step,), nodes[3].body)


def test_specifications_and_kernels_at_sizes():
    x = spec(N, 3, dtype="float16")
    assert x.is_symbolic and not spec(2, 3).is_symbolic and x.at({"n": 4}) == (4, 3)
    assert (spec(2, 3).num_elements, spec(2, 3).num_bytes, spec(2, 0).num_bytes, spec(dtype="float64").num_bytes) == (6, 24, 0, 8)
    assert str(x) == "float16[n, 3]" and str(spec(dtype="seq(float32)")) == "seq(float32)"
    for dtype, is_object in (("seq(float32)", True), ("optional(int8)", True), ("map(string, int64)", True), ("value(int32)", True)):
        assert is_object_dtype(dtype) is is_object and is_host_dtype(dtype) and numpy_dtype(dtype) == np.int64
    assert is_host_dtype("string") and not is_object_dtype("string") and not is_host_dtype("float32")
    info = kernel("k", inputs=(x,), outputs=(spec(N + 1),), flops=2 * N, bytes=6 * N, own_flops=5 * N, symbols=("n",))
    found = info.at({"n": 3})
    assert (found.inputs[0].shape, found.outputs[0].shape, found.flops, found.bytes, found.own_flops) == ((3, 3), (4,), 6, 18, 15)
    assert found.symbols == () and found.operator_flops == 15 and found.at({"n": 9}) is found
    assert replace(info, own_flops=None).at({"n": 3}).own_flops is None and kernel("k").operator_flops == 6
    assert EqualSizes(((N, 3), (2 * N, 6))).holds({"n": 3}) and not EqualSizes(((N, 3), (2 * N, 8))).holds({"n": 3})
    assert EqualSizes(()).holds({})


def test_late_results_are_put_at_their_places():
    """Addresses and sizes of a call: results 0 and 2 of three, of sizes that the call finds out."""
    program = ProgramInfo(
        "f", (), (spec(symbol("a"), N), spec(2), spec(symbol("b"), dtype="int64")), (), True, late=(0, 2), defined=("a", "b")
    )
    late = Late(program)
    place = late.place()
    assert late.positions == (0, 2) and place.shape == (4,) and place.dtype == np.int64 and not place.any()
    place[:] = [1000, 2000, 5, 7]
    assert late.among(["known"], place, {"n": 3, "a": 99}, lambda *made: made) == [
        (1000, (5, 3), "float32"),
        "known",
        (2000, (7,), "int64"),
    ]


# ---- graphs


A, B = spec(2, 3, name="a"), spec(4, name="b")
KERNELS = {
    "k": kernel("k"),
    "o": kernel("o", outputs=(spec(1),)),
    "w": kernel("w", outputs=(spec(1), spec(64, name="workspace")), schedule="mma"),
}


def program(name, inputs, outputs, *steps, **others):
    named = tuple(replace(s, name=s.name or f"y{i}") for i, s in enumerate(outputs))
    return ProgramInfo(name, tuple(inputs), named, tuple(steps), True, **others)


def graph_of(*programs, parameters=(), sizes=None):
    return program_graph(programs[0].name, {p.name: p for p in programs}, KERNELS, parameters, sizes)


def test_tensors_of_a_graph():
    """A tensor that is overwritten, one that is read under another shape, and two that are read as one."""
    six = spec(6)
    found = graph_of(
        program(
            "main",
            [A],
            [spec(12), spec(3, 2), spec(2, 3)],
            Step("k", (at("input", A),), (at("output", six),), ("n1", "n2"), (5,)),
            Step("k", (at("output", six),), (at("output", six, 24),)),
            Step("k", (at("input", A), at("param", B, 128)), (at("arena", six, 64),)),
            Step("k", (at("arena", spec(3, 2), 64), at("param", B, 64)), (at("output", spec(3, 2), index=1),)),
            Step("k", (at("input", A),), (at("arena", six, 64),)),
            PackedCall("host.f", (at("arena", six, 64),), (at("output", spec(2, 3), index=2),)),
        ),
        parameters=(ParameterInfo(spec(4, name="k"), 128),),
    )
    assert [(n.op, n.name, n.function, n.inputs) for n in found.nodes] == [
        ("null", "a", "", ()),
        ("null", "p0", "", ()),
        ("null", "k", "", ()),
        ("tvm_op", "k_1", "k", ((0, 0),)),
        ("tvm_op", "k_2", "k", ((3, 0),)),
        ("tvm_op", "k_3", "k", ((0, 0), (2, 0))),
        ("tvm_op", "reshape_nop", NOP, ((5, 0),)),
        ("tvm_op", "k_4", "k", ((6, 0), (1, 0))),
        ("tvm_op", "k_5", "k", ((0, 0),)),
        ("tvm_op", "host.f", "host.f", ((8, 0),)),
        ("tvm_op", "concatenate_nop", NOP, ((3, 0), (4, 0))),
    ]
    assert (found.arguments, found.heads, found.output_names) == ((0, 1, 2), ((10, 0), (7, 0), (9, 0)), ("y0", "y1", "y2"))
    # The parts of the output share its storage, and so do the first tensor of the arena and its other shape.
    outputs = [node.outputs[0] for node in found.nodes]
    assert [(o.storage, o.offset, o.shape) for o in outputs[3:]] == [
        *((3, 0, (6,)), (3, 24, (6,)), (4, 0, (6,)), (4, 0, (3, 2)), (5, 0, (3, 2))),
        *((4, 0, (6,)), (6, 0, (2, 3)), (3, 0, (12,))),
    ]
    assert found.storage_bytes == {0: 24, 1: 16, 2: 16, 3: 48, 4: 24, 5: 24, 6: 24}
    first = found.nodes[3]
    assert (first.sources, first.sizes, first.attrs["ops"], first.attrs["schedule"]) == (("n1", "n2"), (5,), "add nn.relu", "general")
    assert found.nodes[9].attrs == {} and found.nodes[4].sources == ()
    assert parse_graph(found.json()) == found
    data = json.loads(found.json())
    assert data["node_row_ptr"] == list(range(12)) and data["nodes"][3]["attrs"]["num_inputs"] == "1"
    assert data["nodes"][5]["attrs"]["num_inputs"] == "2" and data["nodes"][3]["attrs"]["sizes"] == "[5]"
    assert data["nodes"][3]["attrs"]["flatten_data"] == "0" and data["nodes"][3]["inputs"] == [[0, 0, 0]]
    assert data["heads"] == [[10, 0, 0], [7, 0, 0], [9, 0, 0]] and found.json().startswith('{\n "nodes": [\n  {')
    assert "attrs" not in data["nodes"][0] and "sizes" not in data["nodes"][4]["attrs"] and set(data["attrs"]["device_index"][1]) == {1}


def test_which_tensors_the_bytes_of_a_memory_are():
    """Two side by side, of which the second is written first: under other shapes, together, in part, and after a call wrote one again."""
    first, second = at("arena", spec(6), 64), at("arena", spec(6), 88)

    def reads(*references, other=()):
        steps = [PackedCall("f", (at("arena", tensor, offset),), (at("output", spec(1)),)) for tensor, offset in references]
        found = graph_of(program("main", [A], [spec(1)], Step("o", (), (second,)), Step("o", (), (first,)), *other, *steps))
        assert "workspace" not in found.nodes[1].attrs
        name = lambda place: found.nodes[place[0]].name  # noqa: E731 (for two uses)
        return {node.name: [name(place) for place in node.inputs] for node in found.nodes[3 + len(other) :]}

    assert reads((spec(6), 64), (spec(6), 88)) == {"f": ["o_1"], "f_1": ["o"]}
    assert reads((spec(3, 2), 88), (spec(6), 88)) == {"reshape_nop": ["o"], "f": ["reshape_nop"], "f_1": ["o"]}
    assert reads((spec(3), 88), (spec(3), 76)) == {
        "reshape_nop": ["o"],
        "f": ["reshape_nop"],
        "reshape_nop_1": ["o_1"],
        "f_1": ["reshape_nop_1"],
    }
    assert reads((spec(6), 76)) == {"concatenate_nop": ["o_1", "o"], "f": ["concatenate_nop"]}
    assert reads((spec(12), 64), (spec(3, 4), 64), (spec(2, 6), 64), (spec(12), 64)) == {
        "concatenate_nop": ["o_1", "o"],
        "f": ["concatenate_nop"],
        "reshape_nop": ["concatenate_nop"],
        "f_1": ["reshape_nop"],
        "reshape_nop_1": ["concatenate_nop"],
        "f_2": ["reshape_nop_1"],
        "f_3": ["concatenate_nop"],
    }
    again = (Step("k", (), (first,)), Step("k", (), (first,)))
    assert reads((spec(6), 64), (spec(6), 88), other=again) == {"f": ["k_1"], "f_1": ["o"]}
    over = (Step("k", (), (at("arena", spec(1), 84),)),)
    with pytest.raises(ValueError, match="found a tensor in the memory arena 0 that no call before has written"):
        reads((spec(5), 64), other=over)
    assert reads((spec(1), 84), (spec(6), 88), other=over) == {"f": ["k"], "f_1": ["o"]}


def test_callees_read_parameters_and_leave_tensors_in_the_arena_of_their_callers():
    x = spec(4, name="x")
    inner = program(
        "g",
        [x],
        [x],
        Step("k", (at("input", x), at("param", B, 64)), (at("arena", x, 8),)),
        Step("w", (at("param", B, 128),), (at("output", x), at("arena", spec(64), 128))),
    )
    call = ProgramCall("g", (at("input", x),), (at("output", x),), 256)
    after = Step("k", (at("arena", x, 256 + 8), at("arena", x, 8), at("param", spec(2), 0)), (at("output", x, index=1),))
    found = graph_of(program("main", [x], [x, x], Step("k", (), (at("arena", x, 8),)), call, call, after), inner)
    names = [node.name for node in found.nodes]
    assert names == ["x", "p0", "p1", "p2", "k", "k_1", "w", "k_2", "w_1", "k_3"]
    assert [[names[place[0]] for place in node.inputs] for node in found.nodes[4:]] == [
        *([], ["x", "p1"], ["p2"], ["x", "p1"], ["p2"]),
        ["k_2", "k", "p0"],
    ]
    first, second = found.nodes[6].outputs
    assert (first.storage, first.offset, second.offset) == (6, 0, 0) and second.storage == 7 and found.storage_bytes[7] == 256


def test_calls_and_branches_on_sizes_are_inlined():
    """A callee reads and writes what its caller gives it, and has a part of the arena of its caller."""
    x = spec(N, name="x")
    inner = program(
        "g",
        [x],
        [x],
        Step("w", (at("input", x, 0),), (at("arena", x, 8), at("arena", spec(64), 64)), (), (N,)),
        Branch(
            EqualSizes(((N, 4),)),
            (Step("k", (at("arena", x, 8),), (at("output", x),)),),
            (PackedCall("host.g", (at("arena", x, 8),), (at("output", x),)),),
        ),
        symbols=("n",),
    )
    m = symbol("m")
    y = spec(m, name="y")
    call = ProgramCall("g", (at("input", y),), (at("arena", y, 32),), 256 * m, (), (m,))
    half = spec(2)
    again = ProgramCall("g", (at("arena", half, 32),), (at("output", half),), 1024, (), (2,))
    outer = program("main", [y], [spec(2)], call, again, Define("z", at("input", y), 0), symbols=("m",))
    found = graph_of(outer, inner, sizes={"m": 4})
    assert [(n.name, n.function, n.inputs, n.sizes) for n in found.nodes] == [
        ("y", "", (), ()),
        ("w", "w", ((0, 0),), (4,)),
        ("k", "k", ((1, 0),), ()),
        ("reshape_nop", NOP, ((2, 0),), ()),
        ("w_1", "w", ((3, 0),), (2,)),
        ("host.g", "host.g", ((4, 0),), ()),
    ]
    assert found.nodes[1].attrs["workspace"] == "1" and "workspace" not in found.nodes[2].attrs
    assert found.entry((4, 0)) == found.nodes[4].outputs[0] and len(found.nodes[4].outputs) == 2
    assert found.nodes[2].outputs[0].shape == (4,) and found.heads == ((5, 0),)


def test_tensors_without_elements_are_of_their_writers():
    empty = spec(0, 3)
    found = graph_of(
        program(
            "main",
            [replace(empty, name="e")],
            [empty, spec(3, 0)],
            Step("k", (), (at("arena", empty, 64),)),
            Step("k", (at("input", empty),), (at("arena", empty, 64), at("arena", spec(4), 64))),
            Step("k", (at("arena", empty, 64),), (at("output", empty), at("output", spec(3, 0), index=1))),
        )
    )
    assert [n.inputs for n in found.nodes] == [(), (), ((0, 0),), ((2, 0),)] and found.heads == ((3, 0), (3, 1))
    unwritten = graph_of(program("main", [A], [empty]))
    assert (unwritten.nodes[1].function, unwritten.nodes[1].inputs, unwritten.heads) == (NOP, (), ((1, 0),))


def test_programs_that_are_no_graphs():
    flag = at("arena", spec(dtype="bool"))
    step = Step("k", (at("input", A),), (at("output", A),))
    callee = program("g", [A], [A], step)
    call = ProgramCall("g", (at("input", A),), (at("output", A),), 0, ("node",))
    for steps, others, message in (
        ([Branch(flag, (step,), (), ("if",))], [], "found a branch on data at if$"),
        ([Branch(flag, (step,), ())], [], "found a branch on data$"),
        ([call], [replace(callee, steps=(call,), max_depth=1)], "found a call of g, which calls itself"),
        ([Loop((), flag, (step,), ("loop", "er"))], [], "found a loop at loop, er$"),
        ([Allocate(0, 4)], [], "found sizes that only the program finds out$"),
        ([Give((0,))], [], "found sizes that only the program finds out$"),
        ([Step("k", (at("heap", A),), (at("output", A),))], [], "found memory of the heap, whose size only the program finds out"),
        ([Step("k", (at("arena", A),), (at("output", A),))], [], "found a tensor in the memory arena 0 that no call before has written"),
        ([Step("k", (at("input", spec(6, 1)),), (at("output", A),), (), (N,))], [], "found sizes that only the program finds out"),
        ([Step("k", (at("input", spec(dtype="string")),), (at("output", A),))], [], "found a tensor of string, which the host holds"),
        ([call], [replace(callee, max_depth=1)], "found a call of g, which calls itself or finds out sizes at node"),
        ([replace(call, heap=0)], [callee], "found a call of g, which calls itself"),
        ([replace(call, slots=(1,))], [callee], "found a call of g, which calls itself"),
        ([replace(call, names=("m",))], [callee], "found a call of g, which calls itself"),
    ):
        with pytest.raises(ValueError, match=f"main: expected a graph: calls of kernels .*{message}"):
            graph_of(program("main", [A], [A], *steps), *others)
    with pytest.raises(ValueError, match="found a tensor of string"):
        graph_of(program("main", [spec(2, dtype="string", name="s")], [A], step))
    with pytest.raises(ValueError, match="found a tensor of string"):
        graph_of(program("main", [A], [spec(2, dtype="string")]))
    assert len(graph_of(program("main", [A], [A], call), callee).nodes) == 2
    for symbols, sizes, message in (
        (("n",), None, "main: expected sizes for the graph of n, found none"),
        (("n",), {"m": 3}, "expected sizes for the graph of n, found m"),
        ((), {"m": 3}, "expected sizes for the graph of none, found m"),
    ):
        with pytest.raises(ValueError, match=message):
            graph_of(program("main", [A], [A], step, symbols=symbols), sizes=sizes)


def tvm_graph(**changes):
    """A graph of two arguments and two calls, of which the second reads output 1 of the first."""
    data = {
        "nodes": [
            {"op": "null", "name": "x", "inputs": []},
            {"op": "null", "name": "p", "inputs": []},
            {"op": "tvm_op", "name": "f", "attrs": {"func_name": "f"}, "inputs": [[0, 0, 0]]},
            {"op": "tvm_op", "name": "g", "attrs": {"func_name": "g"}, "inputs": [[2, 1, 0]]},
        ],
        "arg_nodes": [0, 1],
        "heads": [[3, 0, 0], [2, 0, 0]],
        "attrs": {
            "dltype": ["list_str", ["float32", "int8", "float32", "int64", "float32"]],
            "storage_id": ["list_int", [0, 1, 2, 0, 3]],
            "shape": ["list_shape", [[4], [3], [2, 2], [2], []]],
        },
        "node_row_ptr": [0, 1, 2, 4, 5],
    }
    for path, value in changes.items():
        *parents, last = [int(key) if key.isdigit() else key for key in path.split("/")]
        place = data
        for key in parents:
            place = place[key]
        place[last] = value
    return parse_graph(json.dumps(data))


def test_graphs_of_tvm_are_read():
    found = tvm_graph()
    assert found.nodes[2].outputs == (Entry((2, 2), "float32", 2), Entry((2,), "int64", 0)) and found.output_names == ()
    assert found.nodes[3].inputs == ((2, 1),) and found.heads == ((3, 0), (2, 0)) and found.arguments == (0, 1)
    assert (found.nodes[3].function, found.nodes[3].attrs, found.nodes[3].sizes, found.nodes[0].function) == ("g", {}, (), "")
    assert found.storage_bytes == {0: 16, 1: 3, 2: 16, 3: 4}
    assert tvm_graph(heads=[[0, 0, 0]]).heads == ((0, 0),)
    two = tvm_graph(**{"node_row_ptr": [0, 2, 3, 4, 5], "nodes/3/inputs/0": [2, 0, 0], "heads": [[3, 0, 0]]})
    assert len(two.nodes[0].outputs) == 2
    assert tvm_graph(**{"attrs/shape/1/3": [0], "attrs/shape/1/1": [0]}).storage_bytes[1] == 0


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("nodes/3/inputs/0", [3, 0, 0], "node 'g' reads output 0 of node 3"),
        ("nodes/3/inputs/0", [-1, 0, 0], "node 'g' reads output 0 of node -1"),
        ("nodes/3/inputs/0", [2, 2, 0], "node 'g' reads output 2 of node 2"),
        ("nodes/3/inputs/0", [2, -1, 0], "node 'g' reads output -1 of node 2"),
        ("heads/0", [3, 1, 0], "head 1 of node 3, which has no such output"),
        ("heads/0", [3, -1, 0], "head -1 of node 3"),
        ("heads/0", [-1, 0, 0], "head 0 of node -1"),
        ("heads/0", [4, 0, 0], "IndexError"),
        ("attrs/storage_id/1/4", -1, "node 'g' gives Entry"),
        ("attrs/shape/1/4", [2, -1], "node 'g' gives Entry"),
        ("attrs/shape/1/4", [-2, -1], "node 'g' gives Entry"),
        ("attrs/storage_offset", ["list_int", [0, 0, 0, 0, -4]], "node 'g' gives Entry"),
        ("attrs/storage_offset", ["list_int", [0, 0, 0, 1, 0]], "node 'f' with more bytes than the argument in its storage"),
        ("attrs/shape/1/3", [3], "node 'f' with more bytes than the argument"),
        ("arg_nodes", [0, 2], "arguments that are other nodes"),
        ("arg_nodes", [-3, 1], "arguments that are other nodes"),
        ("arg_nodes", [0, 0], "two in the same storage"),
        ("attrs/storage_id/1/1", 0, "two in the same storage"),
        ("node_row_ptr", [0, 1, 1, 4, 5], "arguments without tensors, or two"),
        ("attrs/dltype/1/4", "float7", "TypeError"),
    ],
)
def test_what_is_no_graph_of_tvm_is_refused(path, value, message):
    with pytest.raises(ValueError, match=f"graph: expected TVM's graph JSON, found a text that is not .*{message}"):
        tvm_graph(**{path: value})


# ---- step by step


I64, FLAG = spec(1, dtype="int64"), spec(dtype="bool")


def test_places_of_calls_have_the_names_of_what_is_around_them():
    step, packed = Step("k", (), (), ("node",)), PackedCall("host.f", (at("input", A),), (at("output", spec(N)),), ("other",))
    call = ProgramCall("g", (), (), 0)
    by_data, by_size = at("arena", FLAG), EqualSizes(((N, 3),))
    main = program(
        "main",
        [],
        [],
        Branch(by_data, (step,), (call, packed)),
        Branch(by_size, (step,), (packed,)),
        call,
        Loop((step,), by_data, (Branch(by_size, (step,), (step,)), step)),
        Loop((), by_data, (Loop((packed,), by_data, ()),)),
        symbols=("n",),
    )
    programs = {"main": main, "g": program("g", [], [], Branch(by_size, (step,), (packed,)), call, packed)}

    def found(sizes=None, **changes):
        sites = call_sites("main", {**programs, "main": replace(main, **changes)}, KERNELS, sizes)
        assert all(site.where == "/".join(path) for (path, _), site in sites.items())
        return [(site.where, at, site.kernel.name) for (_, at), site in sites.items()]

    first = [("main/then", 0, "k"), ("g/then", 0, "k"), ("g/else", 0, "host.f"), ("g", 2, "host.f"), ("main/else", 1, "host.f")]
    branch = [("main/then_1", 0, "k"), ("main/else_1", 0, "host.f")]
    inner = [("main/loop/then", 0, "k"), ("main/loop/else", 0, "k")]
    last = [("main/loop", 1, "k"), ("main/loop_1/loop/condition", 0, "host.f")]
    loop = [("main/loop/condition", 0, "k")]
    assert found() == [*first, *branch, *loop, *inner, *last]
    # At sizes that are known, of the program itself; a program that calls itself may do so with others.
    assert found({"n": 3}) == [*first, branch[0], *loop, inner[0], *last]
    assert found({"n": 4}) == [*first, branch[1], *loop, inner[1], *last]
    assert found({"n": 3}, max_depth=5) == found()
    site = call_sites("g", programs, KERNELS)[("g",), 2]
    assert site.sources == ("other",) and site.kernel.bytes == 24 + 4 * N and site.kernel.symbols == ("n",)
    assert (site.kernel.flops, site.kernel.schedule, site.kernel.ops) == (0, "packed function", ("host.f",))


def test_programs_that_do_the_same_at_the_same_sizes():
    step, call, by_data = Step("k", (), ()), ProgramCall("g", (), (), 0), at("arena", FLAG)
    g = program("g", [], [], step)
    for steps, others, expected in (
        ((), {}, True),
        ((step, call, Branch(EqualSizes(((N, 3),)), (step,), (call,))), {}, True),
        ((Branch(by_data, (step,), ()),), {}, False),
        ((Branch(EqualSizes(()), (step, PackedCall("f", (), ())), ()),), {}, False),
        ((Loop((), by_data, (step,)),), {}, False),
        ((step, Allocate(0, 4)), {}, False),
        ((step, call), {"g": program("g", [], [], PackedCall("f", (), ()))}, False),
        ((step, call), {"g": program("g", [], [], call)}, False),
        ((step, call, call), {"g": program("g", [], [], step, ProgramCall("h", (), (), 0)), "h": g}, True),
    ):
        programs = {"g": g, **others, "main": program("main", [], [], *steps)}
        assert depends_on_sizes_only("main", programs) is expected, steps


def test_a_program_runs_one_call_at_a_time():
    """Sums of rows in a loop that goes on while a counter is below a limit; memory of the heap that changes places; a call of another
    program in a part of the arena, and in memory of the heap; sizes that the program finds out."""

    def run(function):
        return lambda *arguments: function(*(a if isinstance(a, int) else borrowed(a) for a in arguments))

    def count(counter, limit, flag):
        flag[...] = counter[0] < limit[0]
        counter += 1

    def add(x, total, rows):
        assert rows == x.shape[0]
        total += x.sum(0)

    functions = {"zero": lambda to: to.fill(0), "count": count, "add": add, "copy": lambda x, to, *sizes: np.copyto(to, x)}
    x, row, limit = spec(N, 3), spec(3), spec(1, dtype="int64")
    counter, flag, total = at("arena", I64, 0), at("arena", FLAG, 64), at("arena", row, 128)
    m = symbol("m")
    inner = program("inner", [row], [row], Step("copy", (at("input", row),), (at("arena", row, 64),), (), (3, 3)))
    inner = replace(inner, steps=(*inner.steps, Step("copy", (at("arena", row, 64),), (at("output", row),), (), (3, 3))))
    main = program(
        "main",
        [x, limit],
        [row, spec(3), spec(3), spec(3)],
        Step("zero", (), (counter,)),
        Step("zero", (), (total,)),
        Loop(
            (Step("count", (counter, at("input", limit, index=1)), (flag,)),),
            flag,
            (Branch(EqualSizes(((N, 2),)), (Step("add", (at("input", x),), (total,), (), (N,)),), ()),),
        ),
        PackedCall("test.descriptions.copy", (total,), (at("output", row),)),
        Define("m", counter, 0),
        Allocate(0, 64 * m + 256),
        Allocate(1, 256),
        Step("copy", (total,), (at("heap", row, 0, 0),), (), (m, N)),
        Step("zero", (), (at("heap", row, 0, 1),)),
        Move((0, 1), (1, 0), ("m",), (m + 1,)),
        ProgramCall("inner", (at("heap", row, 0, 1),), (at("output", row, index=1),), 256),
        ProgramCall("inner", (at("heap", row, 0, 0),), (at("output", row, index=2),), 64, heap=0),
        PackedCall("test.descriptions.copy", (total,), (at("output", row, index=3),)),
        symbols=("n",),
    )
    kernels = {name: kernel(name) for name in functions}
    kernels["add"] = kernel("add", flops=3 * N, bytes=12 * N, symbols=("n",))
    kernels["copy"] = kernel("copy", flops=symbol("a"), bytes=symbol("b"), own_flops=2 * symbol("a"), symbols=("a", "b"))
    register_func("test.descriptions.copy", functions["copy"], override=True)
    for rows, turns in ((2, 3), (2, 0), (3, 2)):
        values = np.arange(rows * 3, dtype="float32").reshape(rows, 3)
        outputs = [np.full(3, 9, "float32") for _ in range(4)]
        spaces = {
            "input": [values, np.array([turns])],
            "output": outputs,
            "arena": [np.full(512, 0xAB, "uint8")],
            "param": [np.zeros(0, "uint8")],
        }
        packed = lambda name: run(functions[name])  # noqa: E731 (an argument, not a definition)
        steps = Stepwise("main", {"main": main, "inner": inner}, kernels, packed, spaces, {"n": rows})
        for _ in range(2):  # each run is as the first one
            steps.run()
            expected = values.sum(0) * (turns if rows == 2 else 0)
            for found, wanted in zip(outputs, (expected, expected, np.zeros(3), expected), strict=True):
                np.testing.assert_array_equal(found, wanted)
            names = [(site.where, site.kernel.name) for site in steps.sites]
            branch = [("main/loop/then", "add")] if rows == 2 else []
            assert names == [
                *(("main", "zero"), ("main", "zero"), ("main/loop/condition", "count"), *branch),
                *(("main", "test.descriptions.copy"), ("main", "copy"), ("main", "zero"), ("inner", "copy"), ("inner", "copy")),
                ("main", "test.descriptions.copy"),
            ]
            assert steps.calls == [1, 1, turns + 1, *([turns] if branch else []), 1, 1, 1, 2, 2, 1]
            assert all((seconds > 0) == (calls > 0) for seconds, calls in zip(steps.seconds, steps.calls, strict=True))
            work = dict(zip(names, steps.work, strict=True))
            if branch and turns:
                assert work["main/loop/then", "add"] == SiteWork(6 * turns, 6 * turns, 24 * turns)
            # The counter is one more than the loop's turns.
            assert work["main", "copy"] == SiteWork(2 * (turns + 1), turns + 1, rows) and work["inner", "copy"] == SiteWork(12, 6, 6)


def test_calls_that_nest_as_deep_as_a_program_allows():
    """A counter that each call takes one from, and that ends the calls."""

    def less(counter, flag):
        borrowed(counter)[...] -= 1
        borrowed(flag)[...] = borrowed(counter)[0] > 0

    flag = at("arena", FLAG)
    again = ProgramCall("main", (at("input", I64),), (), 8)
    main = program("main", [I64], [], Step("k", (at("input", I64),), (flag,)), Branch(flag, (again,), ()), max_depth=3)
    for depth in (1, 3, 4):
        spaces = {"input": [np.array([depth])], "output": [], "arena": [np.zeros(64, "uint8")], "param": [np.zeros(0, "uint8")]}
        steps = Stepwise("main", {"main": main}, {"k": kernel("k")}, lambda name: less, spaces, {})
        if depth <= 3:
            steps.run()
            assert steps.calls == [depth]
        else:
            with pytest.raises(RecursionError, match="main: expected at most 3 calls in one another, found more"):
                steps.run()


def test_memory_and_sizes_that_a_program_gives_its_caller():
    """At each run anew: the caller reads what this run's call has given; times are asked for when the memory has been waited for."""

    class Memory(HostMemory):
        waited = False

        def time(self, packed, arguments):
            found = super().time(packed, arguments)
            return lambda: found() if self.waited else -1e9

        def wait(self):
            self.waited = True

    m = symbol("m")
    inner = program(
        "inner",
        [I64],
        [],
        Define("k", at("input", I64), 0),
        Allocate(4, 8 * symbol("k")),
        Step("copy", (at("input", I64),), (at("heap", I64, 0, 4),)),
        Give((4,), (symbol("k") + 1,)),
    )
    for slots, names in (((2,), ()), ((2,), ("m",))):
        call = ProgramCall("inner", (at("input", I64),), (), 0, (), (), -1, slots, names)
        sizes = (m,) if names else (7,)
        inner_ = inner if names else replace(inner, steps=(*inner.steps[:-1], Give((4,))))
        main = program(
            "main",
            [I64],
            [I64, I64],
            call,
            Step("both", (at("heap", I64, 0, 2),), (at("output", I64), at("output", I64, index=1)), (), sizes),
        )

        def both(x, first, second, size):
            borrowed(first)[...], borrowed(second)[...] = borrowed(x), size

        functions = {"copy": lambda x, to: np.copyto(borrowed(to), borrowed(x)), "both": both}
        kernels = {"copy": kernel("copy"), "both": kernel("both", symbols=("s",))}
        given, outputs = np.array([3]), [np.zeros(1, "int64") for _ in range(2)]
        spaces = {"input": [given], "output": outputs, "arena": [np.zeros(64, "uint8")], "param": [np.zeros(0, "uint8")]}
        steps = Stepwise("main", {"main": main, "inner": inner_}, kernels, functions.__getitem__, spaces, {}, Memory())
        for value in (3, 5):
            given[0] = value
            steps.run()
            assert [int(o[0]) for o in outputs] == [value, value + 1 if names else 7] and min(steps.seconds) > 0
