"""Transposes on GPUs through shared memory, emulated against numpy over awkward shapes, and what device code they become."""

import re

import numpy as np
import pytest
from device_kernels import code_of
from oracle import values
from support import Const, program
from symbolic_ops import symbolic_program, tensor

import relayc
from relayc import te
from relayc.dialects.relay import build
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile
from relayc.pipelines.targets.cuda.strategies.transpose import _pitch
from relayc.symbolic import Range

EMULATED = Target("cuda", arch="sm_80", emulate=True, num_threads=2)
CHECKED = {"gpu.check_races": True}


def turned(x, *axes):
    return build("transpose", x, axes=list(axes))


def schedules(module):
    return [kernel.schedule.split()[0] for kernel in module.kernels]


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_permutations(dtype):
    """Squares of vectors, with tiles that are not full; elements, of odd sizes; few channels in runs of several lines."""
    cases = {(3, 31): (1, 0), (72, 136): (1, 0), (2, 3, 5, 7): (0, 2, 3, 1), (7, 2, 3, 5): (3, 2, 1, 0)}
    arrays = [(values(shape) * 9).astype(dtype) for shape in cases]
    fed = program(lambda *xs: [turned(x, *axes) for x, axes in zip(xs, cases.values(), strict=True)], arrays)
    with PassContext(config=CHECKED):
        module = compile(fed, target=EMULATED)
    assert set(schedules(module)) == {"transpose"}
    for array, axes, found in zip(arrays, cases.values(), module["main"](*arrays), strict=True):
        np.testing.assert_array_equal(found, array.transpose(axes))


def test_more_operands_than_shared_memory_has_room_for_have_another_schedule():
    """Each operand that is turned takes 2 KiB, 128 lines of 4 elements, and a block has 48."""

    def total(first, *xs):
        found = [first, *(turned(x, 1, 0) for x in xs)]
        while len(found) > 1:
            found = [build("add", *found[:2]), *found[2:]]
        return found

    for count, schedule in ((24, "transpose"), (25, "general")):
        arrays = [values((1024, 4)), *(values((4, 1024), seed=i) for i in range(count))]
        assert schedules(compile(program(total, arrays), target=EMULATED, stop_after="tir")) == [schedule]
    # One of two results of a kernel.
    xs = [te.placeholder((4, 1024), name=f"X{i}") for i in range(25)]
    few, added = te.placeholder((3, 5), name="F"), te.placeholder((1024, 4), name="Z")
    most = te.compute((1024, 4), lambda i, j: sum((x[j, i] for x in xs), added[i, j]), name="M")
    least = te.compute((5, 3), lambda i, j: few[j, i], name="L")
    kernel = relayc.compile_kernel(te.create_prim_func([*xs, added, few, most, least]), target=EMULATED, keep_ir=True)
    assert 'relay.schedule = "general ' in kernel.ir["tir"]


def test_a_temporary_of_two_tensors_has_another_schedule():
    """It is not inlined where the result reads it."""
    x = te.placeholder((40, 24), name="X")
    y, z = te.compute((40, 24), lambda i, j: (x[i, j] * 2.0, x[i, j] * 3.0), name="P")
    turned = te.compute((24, 40), lambda i, j: y[j, i] + z[j, i], name="Y")
    kernel = relayc.compile_kernel(te.create_prim_func([x, turned]), target=EMULATED, keep_ir=True)
    assert 'relay.schedule = "general ' in kernel.ir["tir"]
    array = values((40, 24))
    np.testing.assert_allclose(kernel(array), 5 * array.T, rtol=1e-6)


def test_fused_with_what_goes_before_and_behind():
    """Operands in the layout of the result, elements of other types, paddings, pieces, two operands that are turned."""
    x, y, b = values((2, 24, 5, 8)), values((2, 5, 8, 24), seed=1), values((24,), seed=2)
    zero = Const(np.zeros((), "float32"))
    kinds = {
        "a residual": (lambda x, y, b, z: build("add", build("add", turned(x, 0, 2, 3, 1), y), b), lambda t: t + y + b),
        "a cast": (lambda x, y, b, z: build("cast", turned(build("negative", x), 0, 2, 3, 1), dtype="float16"), lambda t: -t),
        "two": (
            lambda x, y, b, z: build("multiply", y, turned(build("multiply", x, build("exp", x)), 0, 2, 3, 1)),
            lambda t: y * t * np.exp(t),
        ),
        "a padding": (
            lambda x, y, b, z: build("nn.pad", turned(build("abs", x), 0, 2, 3, 1), z, pad_width=[0, 0, 1, 2, 3, 0, 0, 0]),
            lambda t: np.pad(np.abs(t), [(0, 0), (1, 2), (3, 0), (0, 0)]),
        ),
    }
    for kind, (make, expected) in kinds.items():
        fed = program(lambda *operands, make=make: [make(*operands)], [x, y, b, zero])
        with PassContext(config=CHECKED):
            module = compile(fed, target=EMULATED)
        assert schedules(module) == ["transpose"], kind
        np.testing.assert_allclose(module["main"](x, y, b).astype("float32"), expected(x.transpose(0, 2, 3, 1)), rtol=1e-3, err_msg=kind)


def test_symbolic_sizes():
    mod = symbolic_program(
        lambda a, y: [turned(build("abs", a), 0, 2, 1), build("add", turned(a, 0, 2, 1), y), turned(a, 2, 1, 0)],
        [tensor("float32[b, m, n]"), tensor("float32[b, n, m]")],
        {"m": Range(0), "n": Range(1), "b": Range(0)},
    )
    with PassContext(config=CHECKED):
        module = compile(mod, target=EMULATED)
    assert "transpose" in schedules(module)
    for shape in ((1, 1, 1), (2, 31, 33), (3, 32, 32), (1, 64, 1), (0, 3, 4), (2, 0, 5)):
        a, y = values(shape), values((shape[0], shape[2], shape[1]), seed=1)
        first, second, third = module["main"](a, y)
        np.testing.assert_array_equal(first, np.abs(a.transpose(0, 2, 1)))
        np.testing.assert_allclose(second, a.transpose(0, 2, 1) + y, rtol=1e-6)
        np.testing.assert_array_equal(third, a.transpose(2, 1, 0))


def test_accesses_are_vectors_and_nothing_is_spilled():
    fed = program(lambda x: [turned(x, 0, 2, 3, 1)], [np.zeros((8, 64, 56, 56), "float16")])
    ptx, figures = code_of(fed, "sm_90a")
    for access in (r"ld\.global\.nc", r"st\.shared", r"ld\.shared", r"st\.global"):
        found = set(re.findall(rf"{access}((?:\.v\d)?)\.b32", ptx))
        assert found == {".v4"}, access
    assert not re.search(r"\b(ld|st)\.local\b", ptx)
    if figures.report is not None:
        assert figures.report.spill_stores == figures.report.spill_loads == 0


def test_symbolic_sizes_of_whole_vectors_are_read_and_stored_in_vectors():
    """LLVM does not know what divides a size; addresses say it."""
    mod = symbolic_program(
        lambda x: [turned(x, 0, 2, 3, 1)], [tensor("float16[b, 64, 4*m, 4*n]")], {"m": Range(0), "n": Range(1), "b": Range(0)}
    )
    ptx, _ = code_of(mod, "sm_80")
    assert (ptx.count("ld.global.nc.v4.b16"), ptx.count("st.global.v2.b32")) == (4, 4)
    assert len(re.findall(r"\b(?:ld|st)\.global", ptx)) == 8


def test_an_operand_that_is_read_both_ways():
    x = values((40, 40))
    module = compile(program(lambda x: [build("add", x, turned(x, 1, 0))], [x]), target=EMULATED)
    assert schedules(module) == ["transpose"]
    np.testing.assert_allclose(module["main"](x), x + x.T, rtol=1e-6)


@pytest.mark.parametrize(
    ("across", "along", "vector", "pitch"), [(32, 32, 4, 33), (16, 16, 2, 18), (2, 16, 8, 24), (8, 8, 8, 10), (4, 8, 16, 10), (8, 4, 16, 5)]
)
def test_lines_are_so_far_apart_that_threads_meet_least_at_a_bank(across, along, vector, pitch):
    """At once a warp reads or writes 128 bytes: vectors of 4 bytes or fewer of 32 lanes, of 8 bytes of 16, of 16 bytes of 8."""
    assert _pitch(across, along, vector) == pitch
