"""The runtime module: calls, names, properties, profiling."""

import ctypes
import gc
import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tvm_ffi
from handmade import PARAMETER, build_artifact

from relayc.runtime import CallSite, KernelInfo, Module, Peak
from relayc.runtime.arenas import ArenaPool
from relayc.runtime.artifact import ALIGNMENT, TensorSpec, aligned_empty
from relayc.runtime.profile import SiteWork, Total, make_profile, marked, peak_text, saved_text, share_texts


def expected(x):
    return 2 * (x + PARAMETER.reshape(2, 3))


def test_main_gives_several_outputs_as_a_tuple_of_arrays(module, x, n):
    y, m = module["main"](x, n)
    np.testing.assert_array_equal(y, expected(x))
    np.testing.assert_array_equal(m, n)
    assert y.dtype == np.float32 and m.dtype == n.dtype


def test_a_kernel_gives_its_single_output_bare(module, x):
    np.testing.assert_array_equal(module["add"](x, x), 2 * x)


def test_outputs_are_aligned_and_new_each_time(module, x, n):
    first, second = module["main"](x, n)[0], module["main"](x + 1, n)[0]
    assert first.ctypes.data % ALIGNMENT == 0
    assert not np.shares_memory(first, second)
    np.testing.assert_array_equal(first, expected(x))


def test_out_receives_the_outputs(module, x, n):
    y, m = np.empty_like(x), np.empty_like(n)
    out = (y, m)
    assert module["main"](x, n, out=out) is out
    np.testing.assert_array_equal(y, expected(x))


def test_run_takes_and_gives_arrays_by_name(module, x, n):
    results = module.run({"n": n, "x": x})
    assert list(results) == ["y", "m"]
    np.testing.assert_array_equal(results["y"], expected(x))


def test_functions_are_found_by_name(module):
    assert module.function_names() == ("main", "add", "copy")
    assert module.get_function("add") is module["add"]
    with pytest.raises(KeyError, match="no function 'mul' in the module; it has main, add, copy"):
        module["mul"]
    for call, what in [
        (lambda: module.schedule("add"), "schedule"),
        (lambda: module.specialize({"n": 2}), "specialize"),
        (lambda: module.export_library("x.so"), "export_library"),
    ]:
        with pytest.raises(ValueError, match=f"{what}: expected a module that relayc.compile gave, found one without a compiler"):
            call()
    with pytest.raises(KeyError, match="schedule: expected a kernel of the module, found 'ad'; did you mean add"):
        module.schedule("ad")


def test_inputs_and_outputs_have_names_shapes_and_dtypes(module):
    assert module.input_names == ("x", "n") and module.output_names == ("y", "m")
    assert module.inputs[0].shape == (2, 3) and module.inputs[1].dtype == "bfloat16"


def test_packed_functions_can_be_called_from_tvm_ffi(module, x):
    packed = module["add"].packed
    assert isinstance(packed, tvm_ffi.Function)
    y = np.zeros_like(x)
    packed(tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(y))
    np.testing.assert_array_equal(y, 2 * x)


def test_a_function_keeps_the_code_alive(x):
    function = Module(build_artifact())["add"]
    gc.collect()
    np.testing.assert_array_equal(function(x, x), 2 * x)


def test_ir_that_was_not_kept_is_an_error_that_says_how_to_keep_it(module):
    assert module.ir["llvm"] == "text"
    with pytest.raises(KeyError, match="keep_ir=True"):
        module.ir["te"]


def test_profile_has_a_row_for_each_step_in_order(module, x, n):
    profile = module.profile({"x": x, "n": n}, repeat=3)
    assert [row.kernel.name for row in profile.rows] == ["add", "add", "copy"]
    assert {(row.calls, row.where) for row in profile.rows} == {(1, "main")}
    assert sum(row.share for row in profile.rows) == pytest.approx(1)
    assert profile.rows[0].gflops == pytest.approx(6 / profile.rows[0].seconds / 1e9)
    assert profile.latency > 0
    assert "copy" in str(profile)
    assert profile.peak is None  # nothing here can measure it
    with pytest.raises(ValueError, match="repeat: expected at least 1, found 0"):
        module.profile({"x": x, "n": n}, repeat=0)


def test_shares_of_the_peak():
    kernels = [KernelInfo(name, (), (), ops, (), flops, size) for name, ops, flops, size in PROFILED]
    asked = []
    peak = Peak(2, gflops=100.0, read_gbytes=10.0, triad_gbytes=8.0)
    times = [(1e-3, 1), (2e-3, 1), (1e-3, 1), (0, 1)]
    profile = make_profile([CallSite(k, (k.name,)) for k in kernels], times, 5e-3, 2, lambda n: asked.append(n) or peak)
    assert not asked  # nothing is measured before it is asked for
    assert profile.peak is peak and asked == [2]
    conv, again, copy, empty = profile.rows
    assert conv.shares(peak) == pytest.approx((0.5, 0.1)) and conv.roof(peak) == pytest.approx(0.5)
    assert copy.shares(peak) == pytest.approx((0, 0.8)) and copy.lost(peak) == pytest.approx(0.2e-3)
    assert again.lost(peak) == pytest.approx(1.5e-3) and empty.seconds > 0
    convs, *others = profile.by_operators()
    assert (convs.operators, convs.calls, convs.flops, convs.seconds) == (("nn.conv2d", "add"), 2, 100e6, pytest.approx(3e-3))
    assert convs.share + sum(t.share for t in others) == pytest.approx(1) and len(others) == 2
    assert profile.total().bytes == 10e6 and "50%" in str(profile) and "100 GFLOP/s" in str(profile)
    data = json.loads(json.dumps(profile.as_data()))
    assert data["peak"]["gflops"] == 100.0 and data["kernels"][2]["of_memory"] == pytest.approx(0.8)
    assert [row["kernel"] for row in data["kernels"]] == ["conv", "conv_1", "copy", "empty"]


PROFILED = [
    ("conv", ("nn.conv2d", "add"), 50_000_000, 1_000_000),
    ("conv_1", ("nn.conv2d", "add"), 50_000_000, 1_000_000),
    ("copy", ("copy",), 0, 8_000_000),
    ("empty", ("add",), 0, 0),
]


@pytest.mark.parametrize(
    ("dtypes", "tensor", "share"),
    [
        (["float16"], 40.0, 0.25),
        (["float16"], 0.0, 0.1),
        (["float16", "float32"], 40.0, 0.1),
        (["float16", "bfloat16"], 40.0, 0.25),
        (["bfloat16", "int8"], 40.0, 0.25),
        (["int8"], 40.0, 0.1),
    ],
)
def test_products_of_narrow_floats_are_measured_by_tensor_cores_where_there_are_any(dtypes, tensor, share):
    inputs = tuple(TensorSpec(f"x{i}", (4,), dtype) for i, dtype in enumerate(dtypes))
    (row,) = make_profile([CallSite(KernelInfo("k", inputs, (), (), (), 10_000_000, 0))], [(1e-3, 1)], 1e-3, 1).rows
    assert row.shares(Peak(1, 100.0, 10.0, 8.0, tensor))[0] == pytest.approx(share)


def test_memory_is_no_limit_for_what_is_faster_than_memory():
    peak = Peak(1, 100.0, 10.0, 8.0)
    (row,) = make_profile([CallSite(KernelInfo("k", (), (), (), (), 10_000_000, 20_000_000))], [(1e-3, 1)], 1e-3, 1).rows
    assert row.shares(peak) == pytest.approx((0.1, 2.0)) and row.lost(peak) == pytest.approx(0.9e-3)


def test_what_bounds_work():
    """A row of 100 us, 10^9 operations and 10^8 bytes a second, on machines that can do more or less: on both sides of each limit."""
    kernel = KernelInfo("k", (), (), (), (), 100_000, 10_000)

    def row(seconds=1e-4, calls=1):
        (found,) = make_profile([CallSite(kernel)], [(seconds, calls)], seconds, 1).rows
        return found

    def peak(gflops=10.0, gbytes=10.0, threads=4):
        return Peak(threads, gflops, gbytes, gbytes / 2)

    cases = (
        (row(), peak(gflops=2.0), None, "compute"),
        (row(), peak(gflops=2.01, gbytes=0.2), None, "memory"),
        (row(), peak(gbytes=0.201), None, "latency"),
        (row(), peak(gbytes=0.1 / 1.5), None, "memory"),
        (row(), peak(gbytes=0.066), None, "latency"),
        # Calls of less than 10 us each.
        (row(1e-5, 1), peak(gflops=100.0), None, "latency"),
        (row(0.99e-5, 1), peak(gflops=100.0), None, "overhead"),
        (row(1e-4, 9), peak(gflops=100.0), None, "latency"),
        (row(1e-4, 11), peak(gflops=100.0), None, "overhead"),
        (row(1e-4, 11), peak(gflops=100.0, gbytes=1.0), None, "overhead"),
        (row(1e-4, 11), peak(gflops=0.001), None, "compute"),
        # Four threads are to bring three quarters more than one: 175 us of one thread.
        (row(), peak(), 1.75e-4, "latency"),
        (row(), peak(), 1.74e-4, "threads"),
        (row(), peak(threads=2), 1.25e-4, "latency"),
        (row(), peak(threads=2), 1.24e-4, "threads"),
        (row(), peak(threads=1), 1e-9, "latency"),
    )
    for work, machine, alone, expected in cases:
        assert work.bound(machine, alone) == expected, (work, machine, alone)
    # Of kernels of several types, the operations of f32 are the peak.
    assert Total((), 1, 1e-3, 1.0, 10**8, 10**8, 10**6).shares(Peak(1, 100.0, 10.0, 8.0, tensor_gflops=1e3)) == pytest.approx((1.0, 0.1))
    assert row(calls=0).bound(peak()) == "overhead" and row().lost(peak(gbytes=0.1)) == 0 and row().lost(peak(gbytes=0.11)) > 0
    assert row(calls=0).seconds == row(calls=0).gflops == row(calls=0).gbytes == row(calls=0).shares(peak())[0] == 0
    assert row(calls=0).flops == row(calls=0).bytes == row(calls=0).done_flops == 0 and row(calls=3).flops == 300_000


def test_sums_of_rows_and_times():
    conv = KernelInfo("conv", (), (), ("conv",), ("n",), 4_000, 500, "mma", own_flops=9_000)
    copy = KernelInfo("copy", (), (), ("copy",), (), 0, 1_000)
    sites = [CallSite(conv, ("n",)), CallSite(copy, (), "main/loop"), CallSite(conv, (), "g")]
    work = [SiteWork(18_000, 8_000, 1_000), SiteWork(0, 0, 5_000), SiteWork(1, 2, 3)]
    assert work[0] + work[2] == SiteWork(18_001, 8_002, 1_003) and SiteWork.of(conv) == SiteWork(9_000, 4_000, 500)
    profile = make_profile(sites, [(3e-6, 2), (4e-6, 5), (1e-6, 1)], 2e-5, 3, None, work)
    assert [row.share for row in profile.rows] == pytest.approx([0.375, 0.5, 0.125]) and profile.seconds == pytest.approx(8e-6)
    total = profile.total()
    assert (total.calls, total.flops, total.done_flops, total.bytes, total.operators) == (8, 18_001, 8_002, 6_003, ())
    # Those that take longest first; of equal ones those that come first.
    assert [(t.operators, t.calls, t.share) for t in profile.by_operators()] == [(("conv",), 3, 0.5), (("copy",), 5, 0.5)]
    plain = make_profile(sites, [(0.0, 2), (0.0, 0), (1e-6, 1)], 1e-5, 1)
    assert [row.seconds for row in plain.rows] == [1e-9, 0, 1e-6]
    assert (plain.rows[0].flops, plain.rows[0].done_flops, plain.rows[0].bytes, plain.rows[1].bytes) == (18_000, 8_000, 1_000, 0)
    assert make_profile(sites, [(0.0, 0)] * 3, 1e-5, 1).total().seconds == 1e-9
    assert [row.share for row in make_profile(sites, [(0.0, 0)] * 3, 1e-5, 1).rows] == [0, 0, 0]
    text = str(profile)
    assert "*conv" in text and "main/loop" in text and "8 calls, 0.008 ms in kernels, 0.020 ms a call" in text and "peak" not in text
    assert saved_text(total) == "0.00 GFLOP by the operators' definitions, 0.00 done (kernels marked *: Winograd)" in text
    assert saved_text(profile.rows[1]) == "" and marked(copy) == "copy" and share_texts(total, None) == ("", "")
    assert share_texts(profile.rows[0], Peak(1, 10.0, 1.0, 2.0)) == ("27%", "17%")
    data = profile.as_data()
    assert data["peak"] is None and "bound" not in data["kernels"][0] and data["kernels"][0]["sources"] == ["n"]
    assert [row["where"] for row in data["kernels"]] == ["main", "main/loop", "g"] and data["kernels"][1]["calls"] == 5
    assert (data["threads"], data["latency_seconds"], data["kernel_seconds"]) == (3, 2e-5, profile.seconds)
    assert data["kernels"][0]["gflops"] == pytest.approx(6.0) and data["kernels"][0]["done_flops"] == 8_000


def test_the_roofline_of_a_machine():
    peak = Peak(2, 100.0, 10.0, 20.0, 400.0)
    assert peak.gbytes == 20 and peak.limit(1e9, 1e9) == pytest.approx(0.05) and peak.limit(1e10, 1e9) == pytest.approx(0.1)
    assert peak_text(peak) == "peak of the device: 0.1 TFLOP/s f32, 0 TFLOP/s of 16-bit floats on tensor cores, 20 GB/s memory"
    assert peak_text(Peak(2, 100.0, 10.0, 8.0)) == "peak of 2 threads: 100 GFLOP/s f32, 10.0 GB/s memory"

    def without(threads):
        raise ImportError("no compiler")

    assert make_profile([], [], 1e-5, 1, without).peak is None


def test_threads_get_their_own_arenas(module, n):
    failures = []

    def work(seed):
        x = np.random.default_rng(seed).standard_normal((2, 3), dtype=np.float32)
        for _ in range(500):
            if not np.array_equal(module["main"](x, n)[0], expected(x)):
                failures.append(seed)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert not failures


def test_arenas_of_a_burst_of_calls_go(monkeypatch):
    now = 100.0
    monkeypatch.setattr("relayc.runtime.free_memory.time.monotonic", lambda: now)
    pool = ArenaPool(aligned_empty(64))
    burst = [pool.acquire(64) for _ in range(3)]
    for arena in burst:
        pool.release(arena)
    for _ in range(5):  # soon after: all stay
        pool.release(pool.acquire(64))
    assert [id(pool.acquire(64)) for _ in burst] == [id(arena) for arena in reversed(burst)]
    for arena in burst:
        pool.release(arena)
    now = 200.0
    for _ in range(5):
        last = pool.acquire(64)
        pool.release(last)
    assert pool.acquire(64) is last is burst[-1]
    assert all(pool.acquire(64) is not arena for arena in burst)


def test_calls_of_other_sizes_find_the_pages_of_smaller_arenas():
    pool, addresses = ArenaPool(aligned_empty(64), grows=True), set()
    for mib in (1, 2, 5, 14, 3, 15):
        tensor, array = arena = pool.acquire(mib << 20)
        assert tensor.data_ptr() == array.ctypes.data and array.nbytes >= mib << 20
        addresses.add(array.ctypes.data)
        pool.release(arena)
    # One memory, which begins with a large page.
    assert len(addresses) == 1 and addresses.pop() % (2 << 20) == 0
    assert ArenaPool(aligned_empty(64)).acquire(1000)[1].nbytes == 1000
    # Sixteen times the first size, and 256 MiB more at most.
    assert [ArenaPool(aligned_empty(64), grows=True).acquire(n)[1].nbytes for n in (0, 1000, 1 << 28)] == [0, 16000, 2 << 28]


def test_calls_release_the_gil(module):
    assert all(module[name].packed.release_gil for name in module.function_names())


def test_small_memory_is_that_of_ctypes():
    for num_bytes, is_small in ((0, True), (1, True), (4095, True), (4096, True), (4097, False), (8192, False)):
        found = aligned_empty(num_bytes)
        assert isinstance(found.base, ctypes.Array) is is_small
        assert (found.nbytes, found.ctypes.data % ALIGNMENT) == (num_bytes, 0)
    assert not isinstance(aligned_empty(64, 2 * ALIGNMENT).base, ctypes.Array)
