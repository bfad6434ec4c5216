"""Kernels to PTX and cubins: what instructions they get, what ptxas says, and what is refused."""

import os
import re

import pytest
from device_kernels import WG, cuda, device_code, launched, lower_device, outlined, ptx_of

from relayc.dialects.mlir import func, ir, make_context
from relayc.pipelines.targets.cuda.architectures import ARCHITECTURES
from relayc.pipelines.targets.cuda.device.code import compile_kernels
from relayc.pipelines.targets.cuda.device.errors import DeviceCodeError
from relayc.pipelines.targets.cuda.device.figures import count_ptx, resident_blocks, uses_tensor_cores
from relayc.pipelines.targets.cuda.device.launches import LaunchFacts, launch_facts
from relayc.pipelines.targets.cuda.device.lowering import lower_kernels
from relayc.pipelines.targets.cuda.device.ptxas import register_limits, tool

needs_ptxas = pytest.mark.skipif(tool("ptxas") is None, reason="ptxas is not installed (package nvidia-cuda-nvcc)")
needs_nvdisasm = pytest.mark.skipif(tool("nvdisasm") is None, reason="nvdisasm is not installed (package nvidia-cuda-nvdisasm)")

COPY = """
    %i = arith.muli %t, %c4 : index
    %v = vector.load %x[%b, %i] : memref<64x512xf32>, vector<4xf32>
    vector.store %v, %y[%b, %i] : memref<64x512xf32>, vector<4xf32>"""
ROWS = "%x: memref<64x512xf32>, %y: memref<64x512xf32>"

REDUCE = f"""
    %i = arith.muli %t, %c4 : index
    %v = vector.load %x[%b, %i] : memref<64x512xf32>, vector<4xf32>
    %own = vector.reduction <add>, %v : vector<4xf32> into f32
    %by16 = arith.constant 16 : i32
    %width = arith.constant 32 : i32
    %other, %valid = gpu.shuffle xor %own, %by16, %width : f32
    %sum = arith.addf %own, %other : f32
    memref.store %sum, %s[%t] : memref<128xf32, {WG}>
    gpu.barrier
    %first = memref.load %s[%c0] : memref<128xf32, {WG}>
    %e = math.exp %first : f32
    %w = vector.broadcast %e : f32 to vector<4xf32>
    vector.store %w, %y[%b, %i] : memref<64x512xf32>, vector<4xf32>"""


def test_vectors_of_16_bytes_are_one_access() -> None:
    ptx = ptx_of(launched(ROWS, COPY))
    assert ptx.count("ld.global.nc.v4.b32") == 1
    assert ptx.count("st.global.v4.b32") == 1
    assert ".maxntid 128, 1, 1" in ptx


def test_a_view_at_an_odd_offset_is_read_element_by_element() -> None:
    kernel = launched(ROWS, COPY)
    ptx = ptx_of(f"""{kernel}
func.func @main(%x: memref<64x512xf32>, %arena: memref<?xi8>) {{
  %at = arith.constant 36 : index
  %y = memref.view %arena[%at][] : memref<?xi8> to memref<64x512xf32>
  call @k(%x, %y) : (memref<64x512xf32>, memref<64x512xf32>) -> ()
  return
}}""")
    assert "ld.global.nc.v4.b32" in ptx  # of the other buffer nothing is known that speaks against it
    assert "st.global.v" not in ptx
    assert ptx.count("st.global.b32") == 4


def test_a_buffer_that_is_written_is_not_read_through_the_cache_of_constants() -> None:
    body = COPY.replace("vector.store %v", "%w = arith.addf %v, %v : vector<4xf32>\n vector.store %w")
    ptx = ptx_of(launched("%y: memref<64x512xf32>", body.replace("%x", "%y")))
    assert "ld.global.v4.b32" in ptx
    assert ".nc" not in ptx


def test_barriers_shuffles_and_shared_memory() -> None:
    ptx = ptx_of(launched(ROWS, REDUCE, workgroup=f"%s : memref<128xf32, {WG}>"))
    assert "shfl.sync.bfly.b32" in ptx
    assert ptx.count("bar.sync") == 1
    assert ".shared .align 512 .b8 k_shared_0[512]" in ptx
    assert "__nv" not in ptx  # no library of the maker


@needs_ptxas
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90a", "sm_100", "sm_120"])
def test_ptxas_takes_the_code(arch: str) -> None:
    (figures,) = device_code(launched(ROWS, REDUCE, workgroup=f"%s : memref<128xf32, {WG}>"), arch).figures()
    assert figures.report is not None
    assert 0 < figures.report.registers <= 40
    assert (figures.report.spill_stores, figures.report.spill_loads, figures.report.warnings) == (0, 0, ())
    assert figures.report.shared_bytes >= figures.static_shared_bytes == 512
    assert figures.report.barriers == 1
    assert figures.threads == 128
    assert figures.occupancy == 1.0


@needs_nvdisasm
@needs_ptxas
def test_instructions_are_counted() -> None:
    (figures,) = device_code(launched(ROWS, COPY), "sm_90a").figures()
    assert figures.is_sass
    assert figures.instructions["LDG"] == figures.instructions["STG"] == 1
    assert figures.tensor_core_instructions == 0


def test_much_shared_memory_is_dynamic() -> None:
    buffers = f"%s : memref<128x128xf32, {WG}>, %bars : memref<4xi64, {WG}>"
    body = f"""
    %v = memref.load %x[%b, %t] : memref<64x512xf32>
    memref.store %v, %s[%t, %c1] : memref<128x128xf32, {WG}>
    gpu.barrier
    %n = memref.load %bars[%c1] : memref<4xi64, {WG}>
    %w = memref.load %s[%c3, %t] : memref<128x128xf32, {WG}>
    %f = arith.sitofp %n : i64 to f32
    %r = arith.addf %w, %f : f32
    memref.store %r, %y[%b, %t] : memref<64x512xf32>"""
    (kernel,) = device_code(launched(ROWS, body, workgroup=buffers)).images.kernels.values()
    assert (kernel.static_shared_bytes, kernel.dynamic_shared_bytes) == (0, 128 * 128 * 4 + 4 * 8)
    assert ".extern .shared .align 1024 .b8 k_shared[]" in kernel.of("sm_80").ptx


def test_memory_of_a_thread_in_a_loop_is_allocated_once() -> None:
    body = """
    scf.for %i = %c0 to %threads step %c1 {
      %m = memref.alloca() : memref<4xf32>
      %j = memref.load %n[%i] : memref<128xi64>
      %at = arith.index_cast %j : i64 to index
      %v = memref.load %x[%b, %i] : memref<64x512xf32>
      memref.store %v, %m[%at] : memref<4xf32>
      %w = memref.load %m[%c1] : memref<4xf32>
      memref.store %w, %y[%b, %i] : memref<64x512xf32>
    }"""
    ptx = ptx_of(launched(f"{ROWS}, %n: memref<128xi64>", body))
    assert "__local_depot0[16]" in ptx
    assert "alloca" not in ptx


def test_sums_of_the_device_are_unordered_and_counts_are_ordered() -> None:
    body = """
    %v = memref.load %x[%b, %t] : memref<64x512xf32>
    %0 = memref.atomic_rmw addf %v, %y[%b, %c0] : (f32, memref<64x512xf32>) -> f32"""
    ptx = ptx_of(launched(ROWS, body))
    assert "red.global.add.f32" in ptx or "atom.global.add.f32" in ptx
    assert "fence" not in ptx
    count = """
    %one = arith.constant 1 : i32
    %old = memref.atomic_rmw addi %one, %n[%c0] : (i32, memref<1xi32>) -> i32
    %last = arith.sitofp %old : i32 to f32
    memref.store %last, %y[%b, %t] : memref<64x512xf32>"""
    ptx = ptx_of(launched(f"{ROWS}, %n: memref<1xi32>", body + count))
    assert ptx.count("fence.acq_rel.gpu") == 2
    assert ".sys" not in ptx
    unused = count.replace("sitofp %old", "sitofp %one")
    assert "fence" not in ptx_of(launched(f"{ROWS}, %n: memref<1xi32>", body + unused))
    # In shared memory only the threads of the block see a count, and barriers order those.
    shared = count.replace("memref<1xi32>", f"memref<1xi32, {WG}>")
    assert "fence" not in ptx_of(launched(ROWS, body + shared, workgroup=f"%n : memref<1xi32, {WG}>"))


# ---- what is refused ---------------------------------------------------------------------------------------------------------------


def test_an_operation_without_lowering_is_named() -> None:
    body = "%v = memref.load %x[%b, %t] : memref<64x512xf32>\n%r = math.cbrt %v : f32\nmemref.store %r, %y[%b, %t] : memref<64x512xf32>"
    with pytest.raises(DeviceCodeError, match=r"kernel k at .*: expected operations with a lowering to device code, found math.cbrt"):
        device_code(launched(ROWS, body))


def test_a_shuffle_of_as_many_lanes_as_a_number_says_is_an_error() -> None:
    body = REDUCE.replace("arith.constant 32 : i32", "arith.index_cast %t : index to i32")
    kernel = launched(ROWS, body, workgroup=f"%s : memref<128xf32, {WG}>")
    with pytest.raises(DeviceCodeError, match=r"gpu.shuffle: width: expected a power of two up to 32, found a variable"):
        device_code(kernel)


def test_a_function_beside_kernels_is_an_error() -> None:
    module = outlined(launched(ROWS, COPY))
    (found,) = [op for op in module.body.operations if op.operation.name == "gpu.module"]
    with module.context, ir.Location.unknown(), ir.InsertionPoint.at_block_begin(found.operation.regions[0].blocks[0]):
        func.FuncOp("f", ir.FunctionType.get([], []), visibility="private")
    with pytest.raises(DeviceCodeError, match=r"gpu.module at .*: expected kernels and constants, found func.func"):
        lower_kernels(module, cuda("sm_80"))


def test_too_much_shared_memory_is_an_error() -> None:
    body = f"%v = memref.load %s[%t] : memref<60000xf32, {WG}>\nmemref.store %v, %y[%b, %t] : memref<64x512xf32>"
    kernel = launched(ROWS, body, workgroup=f"%s : memref<60000xf32, {WG}>")
    with pytest.raises(DeviceCodeError, match=r"kernel k: shared memory: expected at most 166912 bytes, found 240000"):
        device_code(kernel)


@pytest.mark.parametrize(("count", "static", "dynamic"), [(12288, 49152, 0), (12289, 0, 49156), (41728, 0, 166912)])
def test_the_largest_shared_memory(count: int, static: int, dynamic: int) -> None:
    body = f"%v = memref.load %s[%t] : memref<{count}xf32, {WG}>\nmemref.store %v, %y[%b, %t] : memref<64x512xf32>"
    (kernel,) = device_code(launched(ROWS, body, threads=1024, workgroup=f"%s : memref<{count}xf32, {WG}>")).images.kernels.values()
    assert (kernel.static_shared_bytes, kernel.dynamic_shared_bytes) == (static, dynamic)


def test_too_many_threads_are_an_error() -> None:
    with pytest.raises(DeviceCodeError, match=r"kernel k: expected at most 1024 threads of a block, found 2048"):
        device_code(launched(ROWS, COPY, threads=2048))


def test_an_architecture_must_have_what_the_target_has() -> None:
    module = outlined(launched(ROWS, COPY))
    lower_kernels(module, cuda("sm_90a"))
    with pytest.raises(DeviceCodeError, match=r"expected what has all of sm_90a, .* found sm_80: it lacks cluster, mbarrier, tma, wgmma"):
        compile_kernels(module, cuda("sm_90a"), ["sm_80"])
    with pytest.raises(DeviceCodeError, match=r"architectures: expected names out of sm_75, .*, found sm_1"):
        compile_kernels(module, cuda("sm_90a"), ["sm_1"])


def test_an_instruction_that_the_architecture_lacks_ends_no_process() -> None:
    body = "%p = llvm.mlir.zero : !llvm.ptr<3>\nnvvm.mbarrier.init %p, %one : !llvm.ptr<3>, i32"
    kernel = launched(ROWS, f"%one = arith.constant 1 : i32\n{body}")
    ptx_of(launched(ROWS, COPY), "sm_75")
    with_a_process = len(os.listdir("/proc/self/fd"))
    with pytest.raises(DeviceCodeError, match=r"kernel k: expected what LLVM has instructions for on sm_75, found: .*mbarrier"):
        device_code(kernel, "sm_75")
    assert len(os.listdir("/proc/self/fd")) < with_a_process
    assert "st.global.v4.b32" in ptx_of(launched(ROWS, COPY), "sm_75")  # the next kernel has another process


# ---- architectures and figures -------------------------------------------------------------------------------------------------------


def test_several_architectures_side_by_side() -> None:
    code = device_code(launched(ROWS, COPY), "sm_80", ("sm_89", "sm_90a", "sm_80"))
    (kernel,) = code.images.kernels.values()
    assert [image.arch for image in kernel.images] == ["sm_80", "sm_89", "sm_90a"]
    for image in kernel.images:
        assert f".target {image.arch}" in image.ptx


@pytest.mark.parametrize(
    ("arch", "threads", "registers", "shared", "blocks"),
    [
        # By the CUDA Occupancy Calculator.
        ("sm_80", 256, 32, 0, 8),
        ("sm_80", 256, 64, 0, 4),
        ("sm_80", 256, 65, 0, 3),
        ("sm_80", 128, 255, 0, 2),
        ("sm_80", 128, 32, 48 << 10, 3),
        ("sm_80", 32, 16, 0, 32),
        ("sm_80", 128, 32, 82 << 10, 1),  # the system has 1 KiB for each block
        ("sm_86", 256, 32, 0, 6),
        ("sm_75", 1024, 64, 0, 1),
        ("sm_90a", 384, 168, 196672, 1),
        ("sm_80", 1024, 128, 0, 0),
    ],
)
def test_resident_blocks(arch: str, threads: int, registers: int, shared: int, blocks: int) -> None:
    assert resident_blocks(ARCHITECTURES[arch], threads, registers, shared) == blocks


def test_more_registers_are_tried_where_ptxas_spills() -> None:
    """Those with which 3, 2 and 1 blocks fit a multiprocessor, where 4 do; a thread has 255 at most."""
    assert list(register_limits(".maxntid 256, 1, 1\n", 64)) == [80, 128, 255]
    assert list(register_limits(".maxntid 33\n", 255)) == []
    assert list(register_limits(".visible .entry k()\n", 64)) == []


def test_instructions_of_several_lines_are_counted() -> None:
    lines = ["mma.sync.aligned.m16n8k8.row.col", "\t{%f1, %f2},", "\t{%r1, %r2};", "@%p1 bra $L__BB0_2;", "$L__BB0_2:", "ret;"]
    text = "\n\t".join(lines)
    assert count_ptx(text) == {"mma": 1, "bra": 1, "ret": 1} and uses_tensor_cores(text) and not uses_tensor_cores("\tret;")


def test_functions_of_the_host_stay_as_they_are() -> None:
    module = outlined(launched(ROWS, COPY))
    before = str(module.body.operations[0])
    lower_device(module, cuda("sm_80"))
    assert str(module.body.operations[0]) == before
    assert "gpu.launch_func" in before
    assert module.operation.verify()


# ---- kernels that somebody else wrote -------------------------------------------------------------------------------------------------


def written(kernels: str, rest: str = "") -> ir.Module:
    context = make_context()
    with context:
        context.load_all_available_dialects()
        return ir.Module.parse(f"module attributes {{gpu.container_module}} {{ gpu.module @m {{ {kernels} }} {rest} }}")


def test_kernels_have_constants_blocks_memory_of_threads_and_a_number_of_threads() -> None:
    module = written("""
memref.global "private" constant @table : memref<4xf32> = dense<[1.0, 2.0, 3.0, 5.0]>
gpu.func @k(%n: memref<128xindex>, %y: memref<128xf32>) private(%p : memref<4xf32, #gpu.address_space<private>>)
    kernel attributes {known_block_size = array<i32: 64, 2, 1>} {
  %c3 = arith.constant 3 : index
  %t = gpu.thread_id x
  %i = arith.andi %t, %c3 : index
  %table = memref.get_global @table : memref<4xf32>
  %v = memref.load %table[%i] : memref<4xf32>
  memref.store %v, %p[%i] : memref<4xf32, #gpu.address_space<private>>
  cf.br ^end
^end:
  %j = memref.load %n[%t] : memref<128xindex>
  %w = memref.load %p[%j] : memref<4xf32, #gpu.address_space<private>>
  memref.store %w, %y[%t] : memref<128xf32>
  gpu.return
}
gpu.func @of_any(%y: memref<128xf32>) kernel {
  gpu.return
}""")
    kernels = lower_device(module, cuda("sm_80")).images.kernels
    ptx = kernels["k"].of("sm_80").ptx
    assert (kernels["k"].threads, kernels["of_any"].threads) == (128, 1024) and ".maxntid 64, 2, 1" in ptx
    assert "__local_depot0[16]" in ptx and re.search(r"\.b8 table\[16\] = \{0, 0, 128, 63, 0, 0, 0, 64, 0, 0, 64, 64, 0, 0, 160, 64\}", ptx)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("(%x: memref<4xf32, strided<[2]>>) kernel {", r"argument 0: expected a buffer of identity layout, found memref<4xf32, strided<"),
        (f"(%n: i32) workgroup(%s: memref<?xf32, {WG}>) kernel {{", r"at .*: expected attributions of static size, found memref<\?xf32"),
        ('(%n: i32) kernel { gpu.printf "x"', "at .*: expected an operation of threads and blocks that kernels have, found gpu.printf"),
    ],
)
def test_what_no_kernel_has_is_an_error(kernel: str, message: str) -> None:
    with pytest.raises(DeviceCodeError, match=f"kernel k:? {message}"):
        lower_kernels(written(f"gpu.func @k{kernel}\n gpu.return }}"), cuda("sm_80"))


def test_buffers_of_a_kernel_without_launches_may_overlap() -> None:
    module = written("gpu.func @k(%x: memref<4xf32>, %y: memref<4xf32>) kernel {\n gpu.return }")
    lower_kernels(module, cuda("sm_80"))
    assert "llvm.align = 1" in str(module) and "llvm.noalias" not in str(module)


def test_a_kernel_without_launches_takes_buffers_of_unknown_size() -> None:
    module = written("""gpu.func @k(%x: memref<?xf32>, %i: index) kernel {
  %v = memref.load %x[%i] : memref<?xf32>
  memref.store %v, %x[%i] : memref<?xf32>
  gpu.return
}""")
    lower_kernels(module, cuda("sm_80"))
    assert re.search(r"llvm.func @k\(%arg0: !llvm.ptr [^%]*%arg1: i64", str(module))


def test_functions_that_may_be_approximate_are_instructions_for_each_element_of_a_vector() -> None:
    body = """
    %i = arith.muli %t, %c4 : index
    %v = vector.load %x[%b, %i] : memref<64x512xf32>, vector<4xf32>
    %w = vector.shape_cast %v : vector<4xf32> to vector<2x2xf32>
    %e = math.exp %w fastmath<afn> : vector<2x2xf32>
    %l = math.log10 %e fastmath<fast> : vector<2x2xf32>
    %q = math.sqrt %l : vector<2x2xf32>
    %r = vector.shape_cast %q : vector<2x2xf32> to vector<4xf32>
    vector.store %r, %y[%b, %i] : memref<64x512xf32>, vector<4xf32>"""
    ptx = ptx_of(launched(ROWS, body))
    for instruction in ("ex2.approx.ftz.f32", "lg2.approx.ftz.f32", "0f3FB8AA3B", "0f3E9A209B", "sqrt.rn.f32"):  # log2(e) and log10(2)
        assert ptx.count(instruction) == 4, instruction


PART = "memref.reinterpret_cast %w to"
BUFFERS = {
    "%a8 = memref.view %x[%c8][] : memref<256xi8> to memref<8xf32>": 8,
    "%a48 = memref.view %x[%c48][] : memref<256xi8> to memref<8xf32>": 16,
    "%m = arith.muli %n, %c8 : index %a = memref.view %x[%m][] : memref<256xi8> to memref<8xf32>": 8,
    "%m = arith.muli %n, %c8 : index %s = arith.addi %m, %c12 : index %a = memref.view %x[%s][] : memref<256xi8> to memref<8xf32>": 4,
    "%s = arith.select %p, %c8, %c48 : index %a = memref.view %x[%s][] : memref<256xi8> to memref<8xf32>": 8,
    "%a = memref.view %x[%n][] : memref<256xi8> to memref<8xf32>": 1,
    "%a = memref.alloc() : memref<8xf32>": 16,
    "%a = memref.alloc(%n) : memref<?xf32>": 16,
    f"%a = {PART} offset: [3], sizes: [8], strides: [1] : memref<64xf32> to memref<8xf32, strided<[1], offset: 3>>": 4,
    f"%a = {PART} offset: [%n], sizes: [8], strides: [1] : memref<64xf32> to memref<8xf32, strided<[1], offset: ?>>": 1,
    "%o = memref.get_global @g : memref<8xf32> %a = memref.cast %o : memref<8xf32> to memref<?xf32>": 1,
}


@pytest.mark.parametrize("buffer", BUFFERS)
def test_alignments_of_buffers_that_kernels_get(buffer: str) -> None:
    """Arguments are at multiples of 16 bytes, and not more is asked for."""
    *_, last = re.findall(r"%\w+(?= = )", buffer)
    type_ = re.findall(r"memref<[^<>]*(?:<[^<>]*>)?>", buffer)[-1]
    facts = facts_of(
        f"{buffer}\n", f"blocks in (%c8, %c8, %c8) threads in (%c8, %c48, %c8) args({last} : {type_}, %n : index)", f"{type_}, index"
    )
    assert facts == LaunchFacts((8, 48, 8), [BUFFERS[buffer], 1], [True, False])


def facts_of(body: str, *launches: str) -> LaunchFacts:
    """The facts of a kernel that a function launches; the last text has the types of its arguments."""
    *launches, types = launches
    arguments = ", ".join(f"%a{i}: {t}" for i, t in enumerate(re.split(r", (?=memref|index)", types)))
    constants = "".join(f"%c{n} = arith.constant {n} : index " for n in (8, 12, 48))
    calls = "\n".join(f"gpu.launch_func @m::@k {launch}" for launch in launches)
    module = written(
        f"gpu.func @k({arguments}) kernel {{ gpu.return }}",
        f"""func.func private @outside(memref<8xf32>)
memref.global "private" @g : memref<8xf32>
func.func @main(%x: memref<256xi8>, %w: memref<64xf32>, %n: index, %p: i1) {{
  {constants}
  {body}
  {calls}
  return
}}""",
    )
    with module.context:
        return launch_facts(module)["k"]


def test_facts_are_those_of_all_launches() -> None:
    """Threads are as many as all launches say by a constant; views of one buffer are not distinct."""
    views = "".join(f"%v{n} = memref.view %x[%c{n}][] : memref<256xi8> to memref<8xf32>\n" for n in (8, 48))
    types = "memref<8xf32>, memref<8xf32>"

    def launch(first: str, second: str, threads: str = "%c8") -> str:
        return f"blocks in (%n, %n, %n) threads in ({threads}, %c8, %c8) args({first} : memref<8xf32>, {second} : memref<8xf32>)"

    made = views + "%a = memref.alloc() : memref<8xf32>"
    assert facts_of(made, launch("%v48", "%a"), types) == LaunchFacts((8, 8, 8), [16, 16], [True, True])
    assert facts_of(made, launch("%v48", "%v8"), types) == LaunchFacts((8, 8, 8), [16, 8], [False, False])
    assert facts_of(made, launch("%v48", "%a"), launch("%v8", "%a"), types) == LaunchFacts((8, 8, 8), [8, 16], [True, True])
    assert facts_of(made, launch("%v8", "%v48"), launch("%v48", "%a"), types) == LaunchFacts((8, 8, 8), [8, 16], [False, False])
    assert facts_of(made, launch("%a", "%v8", "%c48"), launch("%a", "%v8"), types) == LaunchFacts(None, [16, 8], [True, True])
    assert facts_of(made, launch("%a", "%v8", "%n"), types).block is None
    two = "".join(f"%{name} = memref.alloc(%c8) : memref<?xf32>\n" for name in "ab")  # of one size
    both = launch("%a", "%b").replace("memref<8xf32>", "memref<?xf32>")
    assert facts_of(two, both, types.replace("8", "?")).distinct == [True, True]
