"""Images of kernels: what a device loads, what is kept on disk; and LLVM text in the literals of all versions."""

import os
import random
import re
import struct
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from device_kernels import cuda, device_code, launched, lower_device, outlined

from relayc.dialects.mlir import ir, llvm, make_context
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.targets.cuda.device import code, ptx, ptxas
from relayc.pipelines.targets.cuda.device.errors import DeviceCodeError
from relayc.pipelines.targets.cuda.device.llvm_text import readable
from relayc.pipelines.targets.cuda.device.ptxas import tool
from relayc.runtime.cache import Cache
from relayc.runtime.cuda.images import Image, Images, KernelImages, NoImage

KERNEL = launched(
    "%x: memref<64x512xf32>, %y: memref<64x512xf32>",
    "%v = memref.load %x[%b, %t] : memref<64x512xf32>\nmemref.store %v, %y[%b, %t] : memref<64x512xf32>",
)


def kernel_for(*archs: str, cubins: bool = True) -> KernelImages:
    images = tuple(Image(arch, f"ptx of {arch}", f"cubin of {arch}".encode() if cubins else b"") for arch in archs)
    return KernelImages("k", 128, 0, 1 << 16, images)


@pytest.mark.parametrize(
    ("capability", "expected"),
    [
        ((8, 0), b"cubin of sm_80"),
        ((8, 6), b"cubin of sm_80"),  # the same major, a larger minor number
        ((8, 9), b"cubin of sm_89"),
        ((9, 0), b"cubin of sm_90a"),
        ((10, 0), b"ptx of sm_89\0"),  # code with a letter runs on its own architecture alone
        ((12, 0), b"ptx of sm_89\0"),
    ],
)
def test_a_device_loads_the_nearest_image(capability: tuple[int, int], expected: bytes) -> None:
    found = kernel_for("sm_80", "sm_89", "sm_90a").for_device(capability)
    assert next(iter(found.values())) == expected


def test_behind_a_cubin_comes_ptx_for_drivers_that_are_older() -> None:
    found = kernel_for("sm_80", "sm_89", "sm_90").for_device((9, 0))
    assert found == {"cubin of sm_90": b"cubin of sm_90", "PTX of sm_90": b"ptx of sm_90\0"}
    assert list(kernel_for("sm_80", "sm_86").for_device((9, 0))) == ["PTX of sm_86"]


def test_an_image_of_another_architecture_is_not_there() -> None:
    assert kernel_for("sm_80", "sm_90a").of("sm_90a").ptx == "ptx of sm_90a"
    with pytest.raises(NoImage, match=r"kernel k: expected an architecture out of sm_80, sm_90a, found sm_90$"):
        kernel_for("sm_80", "sm_90a").of("sm_90")


def test_without_cubins_the_driver_compiles_ptx() -> None:
    assert kernel_for("sm_80", "sm_90a", cubins=False).for_device((9, 0)) == {"PTX of sm_90a": b"ptx of sm_90a\0"}


@pytest.mark.parametrize(("archs", "capability"), [(("sm_80",), (7, 5)), (("sm_90a",), (10, 0)), (("sm_100",), (9, 0))])
def test_a_device_without_image_is_an_error(archs: tuple[str, ...], capability: tuple[int, int]) -> None:
    found = ".".join(map(str, capability))
    with pytest.raises(
        NoImage, match=rf"kernel k: expected a device that runs code for {archs[0]}, found one of compute capability {found}"
    ):
        kernel_for(*archs).for_device(capability)


def test_images_go_to_bytes_and_back() -> None:
    images = Images.of([kernel_for("sm_80", "sm_90a"), KernelImages("other", 1024, 512, 0, (Image("sm_75", "ptx" * 1000, b"", "said"),))])
    data = images.to_bytes()
    assert Images.from_bytes(data) == images
    assert len(data) < 1000  # compressed
    for wrong in (b"", data[:40], data[:-5], b"x" + data[1:]):
        with pytest.raises(ValueError, match=r"images of kernels: expected what Images\.to_bytes gave, found other data"):
            Images.from_bytes(wrong)


# ---- the cache on disk -------------------------------------------------------------------------------------------------------------


def test_code_that_was_made_before_is_taken_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAYC_CACHE", "1")
    monkeypatch.setenv("RELAYC_CACHE_DIR", str(tmp_path))
    first = device_code(KERNEL)
    assert len(list(tmp_path.glob("*.part"))) == (3 if tool("ptxas") else 1)

    def refuse(*_: object) -> None:
        raise AssertionError("made again")

    monkeypatch.setattr(code, "make_ptx", refuse)
    monkeypatch.setattr(code, "assemble", refuse)
    assert device_code(KERNEL) == first
    for path in tmp_path.glob("*.part"):  # damaged files are as good as none
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(AssertionError, match="made again"):
        device_code(KERNEL)
    cache = Cache.default()
    assert cache is not None
    cache.clear()
    assert not list(tmp_path.glob("*.part"))


def test_without_ptxas_there_is_ptx_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "tool", lambda name: None)
    made = device_code(KERNEL)
    image = made.images.kernels["k"].of("sm_80")
    assert ".target sm_80" in image.ptx
    assert image.cubin == b""
    (figures,) = made.figures()
    assert (figures.report, figures.occupancy, figures.is_sass) == (None, None, False)
    assert figures.instructions["ld"] >= 1


def test_without_llvm_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ptx, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"target cuda: expected the package llvmlite, .*relayc\[cuda\]"):
        device_code(KERNEL)


def test_a_process_whose_answer_nobody_has_read_takes_no_more_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: ptx._Worker, request: object) -> None:
        raise KeyboardInterrupt

    empty = ptx._Pool()
    monkeypatch.setattr(ptx, "_POOL", empty)
    open_files = len(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(ptx._Worker, "ask", interrupted)
        ptx.make_ptx("k", "", "sm_80")
    assert not empty._idle and len(os.listdir("/proc/self/fd")) == open_files
    with pytest.raises(DeviceCodeError, match=r"kernel k: arch: expected sm_75, .*, found sm_1$"):
        ptx.make_ptx("k", "", "sm_1")
    with pytest.raises(DeviceCodeError, match=r"kernel k: expected LLVM text, found: .*expected top-level entity"):
        ptx.make_ptx("k", "nonsense", "sm_80")
    (worker,) = empty._idle  # it has answered
    empty.close()
    assert not empty._idle and worker._process.poll() == 0


def test_without_the_programs_of_nvidia_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ptxas, "tool", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"target cuda: expected ptxas of the package nvidia-cuda-nvcc .*, found none"):
        code.assemble("k", "", "sm_80")
    with pytest.raises(ModuleNotFoundError, match=r"SASS: expected nvdisasm of the package nvidia-cuda-nvdisasm .*, found none"):
        ptxas.disassemble(b"")


def test_programs_of_nvidia_are_those_of_its_packages_or_of_the_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first, second = (tmp_path / folder / "ptxas" for folder in ptxas._FOLDERS)
    monkeypatch.setattr(ptxas, "find_spec", lambda name: None)
    monkeypatch.setattr(ptxas.shutil, "which", lambda name: None)
    assert tool.__wrapped__("ptxas") is None
    monkeypatch.setattr(ptxas.shutil, "which", lambda name: f"/opt/{name}")
    assert tool.__wrapped__("ptxas") == Path("/opt/ptxas")
    monkeypatch.setattr(ptxas, "find_spec", {"nvidia": SimpleNamespace(submodule_search_locations=[str(tmp_path)])}.get)
    for path in (second, first):  # that of CUDA 13 before others
        path.parent.mkdir(parents=True)
        path.touch()
        assert tool.__wrapped__("ptxas") == path and tool.__wrapped__("nvdisasm") == Path("/opt/nvdisasm")
    monkeypatch.setattr(ptxas, "tool", tool.__wrapped__)
    monkeypatch.setitem(ptxas._PACKAGES, "ptxas", "a package that nobody has")
    assert ptxas.tool_version.__wrapped__("ptxas") == str(first)


def test_a_cubin_that_nvdisasm_does_not_read_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "nvdisasm"
    program.write_text("#!/bin/sh\ncat $2\necho 'no  cubin' >&2\nexit $(wc -c < $2)\n")
    program.chmod(0o700)
    monkeypatch.setattr(ptxas, "tool", lambda name: program)
    assert ptxas.disassemble(b"") == ""
    with pytest.raises(ValueError, match=r"^SASS: expected a cubin that nvdisasm reads, found: no cubin$"):
        ptxas.disassemble(b"code")


def test_a_kernel_that_spills_is_assembled_with_more_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first that does not spill counts; of those that all spill the one without a limit."""
    report = "{} bytes stack frame, {} bytes spill stores, {} bytes spill loads\nUsed {} registers"
    text, tried = ".maxntid 256, 1, 1\nret;", list[str]()

    def assembled(name: str, ptx: str, arch: str) -> tuple[bytes, str]:
        tried.append(ptx)
        limit = int(re.findall(r"^\.maxnreg (\d+)$", ptx, re.M)[0]) if "maxnreg" in ptx else 64
        spilt = 0 if limit >= needed else 8
        return b"%d" % limit, report.format(spilt, spilt, spilt, limit)

    monkeypatch.setattr(ptxas, "_assemble", assembled)
    for enough, kept, limits in ((64, b"64", []), (100, b"128", [80, 128]), (999, b"64", [80, 128, 255])):
        needed = enough
        tried.clear()
        assert ptxas.assemble("k", text, "sm_80")[0] == kept
        assert tried == [text, *(f".maxntid 256, 1, 1\n.maxnreg {n}\nret;" for n in limits)]


def test_more_architectures_by_the_context() -> None:
    with PassContext(config={"cuda.architectures": ["sm_89"]}):
        made = lower_device(outlined(KERNEL), cuda("sm_80"))
    assert [image.arch for image in made.images.kernels["k"].images] == ["sm_80", "sm_89"]


def test_ptx_that_ptxas_refuses_is_an_error() -> None:
    if tool("ptxas") is None:
        pytest.skip("ptxas is not installed (package nvidia-cuda-nvcc)")
    with pytest.raises(DeviceCodeError, match=r"kernel k: expected PTX that ptxas takes for sm_80, found: .*error"):
        code.assemble("k", ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() { nonsense; }\n", "sm_80")


def test_the_compiler_process_ends_with_its_parent() -> None:
    program = (
        "import os\n"
        "from relayc.pipelines.targets.cuda.device import ptx\n"
        "ptx.make_ptx('k', 'define ptx_kernel void @k() { ret void }', 'sm_80')\n"
        "print(ptx._POOL._idle[0]._process.pid, flush=True)\n"
        "os._exit(0)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    pid = int(done.stdout)
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        subprocess.run(["sleep", "0.05"], check=True)
        if Path(f"/proc/{pid}/stat").exists() and Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
            return  # it has ended, and nobody has asked how
    pytest.fail("the process of LLVM is still there")


# ---- literals ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("element", "width"), [("f16", 16), ("bf16", 16), ("f32", 32), ("f64", 64)])
def test_literals_keep_their_bits(element: str, width: int) -> None:
    llvmlite = pytest.importorskip("llvmlite.binding")
    rng = random.Random(1)
    infinity = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000, "f64": 0x7FF << 52}[element]
    bits = [rng.getrandbits(width) for _ in range(1000)]
    bits += [0, 1, 1 << (width - 1), infinity, infinity - 1, infinity + 1, infinity | (infinity >> 1) + 1, (1 << width) - 1]
    values = ", ".join(f"0x{b:0{width // 4}X}" for b in bits)
    type_ = f"!llvm.array<{len(bits)} x {element}>"
    with make_context() as context, ir.Location.unknown():
        context.load_all_available_dialects()
        text = f"llvm.mlir.global external constant @g(dense<[{values}]> : tensor<{len(bits)}x{element}>) : {type_}"
        written = llvm.translate_module_to_llvmir(ir.Module.parse(text).operation)
    name = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double"}[element]
    (line,) = [line for line in str(llvmlite.parse_assembly(readable(written))).splitlines() if line.startswith("@g")]
    found = line.partition("[")[2].partition("[")[2].rstrip("]")
    literals = [part.strip().removeprefix(f"{name} ") for part in found.split(",")]
    assert len(literals) == len(bits)
    assert [_bits(literal, element) for literal in literals] == bits


def _bits(literal: str, element: str) -> int:
    """Bits of a float as LLVM before version 23 writes it: hexadecimal, or decimal where that is exact."""
    if literal.startswith(("0xH", "0xR")):
        return int(literal[3:], 16)
    double = int(literal, 16) if literal.startswith("0x") else struct.unpack("<Q", struct.pack("<d", float(literal)))[0]
    if element == "f64":
        return double
    if double & (0x7FF << 52) == 0x7FF << 52 and double & ((1 << 52) - 1):  # a NaN, whose payload is in the upper bits
        return double >> 63 << 31 | 0xFF << 23 | (double >> 29) & 0x7FFFFF
    return struct.unpack("<I", struct.pack("<f", struct.unpack("<d", struct.pack("<Q", double))[0]))[0]
