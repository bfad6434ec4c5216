"""Calls of the driver's functions, as text in the LLVM dialect; what a context holds is said by runtime.cuda.context."""

from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.llvm.entry_body import CONTEXT, FINISH, GIVEN_PLACE
from relayc.pipelines.llvm.tables import Strings
from relayc.runtime.cuda.context import ENTRY_POINTS as FIRST
from relayc.runtime.cuda.context import FAILED, FUNCTIONS, GIVEN, READ, STATUS, STREAM, TENSOR_MAP
from relayc.runtime.cuda.driver import ENTRY_POINTS

LAUNCH = "__relayc_launch"
"""LAUNCH(context, kernel, sizes of the grid, sizes of a block, bytes of dynamic shared memory, places of the arguments)."""

_PLACES = {name: FIRST + i for i, name in enumerate(ENTRY_POINTS)}
_TEXTS = {
    "runtime_error": "RuntimeError",
    "type_error": "TypeError",
    "no_context": "argument %lld: expected the address of a context, an integer, found a value of type %d",
    "launch": "launch of kernel %s (grid %lld x %lld x %lld, block %lld x %lld x %lld, %lld bytes of dynamic shared memory): "
    "the driver says %s",
    "tensor_map": "making a tensor map: the driver says %s",
    "read": "reading an element of a tensor on the device: the driver says %s",
}
_strings = Strings()
_AT = {name: _strings.offset(text) for name, text in _TEXTS.items()}

# What the text below knows of C structures: TVMFFIAny { i32 type_index; i32 padding; i64 value }; type 1 is an integer.
_CALLS = """
llvm.func @snprintf(!llvm.ptr, i64, !llvm.ptr, ...) -> i32
llvm.func @TVMFFIErrorSetRaisedFromCStr(!llvm.ptr, !llvm.ptr)

llvm.func internal @{context}(%args: !llvm.ptr, %position: i64, %place: !llvm.ptr) -> i32
    attributes {{no_inline, passthrough = ["optsize"]}} {{
  %good = llvm.mlir.constant(0 : i32) : i32
  %bad = llvm.mlir.constant(-1 : i32) : i32
  %integer = llvm.mlir.constant(1 : i32) : i32
  %any = llvm.getelementptr %args[%position] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<2 x i64>
  %type = llvm.load %any : !llvm.ptr -> i32
  %0 = llvm.getelementptr %any[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %value = llvm.load %0 : !llvm.ptr -> i64
  %is_integer = llvm.icmp "eq" %type, %integer : i32
  llvm.cond_br %is_integer, ^found, ^other
^found:
  llvm.store %value, %place : i64, !llvm.ptr
  llvm.return %good : i32
^other:
  %size = llvm.mlir.constant(256 : i64) : i64
  %message = llvm.alloca %size x i8 : (i64) -> !llvm.ptr
  %strings = llvm.mlir.addressof @__relayc_driver_strings : !llvm.ptr
  %kind = llvm.getelementptr %strings[{type_error}] : (!llvm.ptr) -> !llvm.ptr, i8
  %format = llvm.getelementptr %strings[{no_context}] : (!llvm.ptr) -> !llvm.ptr, i8
  %1 = llvm.call @snprintf(%message, %size, %format, %position, %type) vararg(!llvm.func<i32 (ptr, i64, ptr, ...)>)
    : (!llvm.ptr, i64, !llvm.ptr, i64, i32) -> i32
  llvm.call @TVMFFIErrorSetRaisedFromCStr(%kind, %message) : (!llvm.ptr, !llvm.ptr) -> ()
  llvm.return %bad : i32
}}

llvm.func internal @{given}(%context: i64) -> !llvm.ptr {{
  %words = llvm.inttoptr %context : i64 to !llvm.ptr
  %0 = llvm.getelementptr %words[{given_word}] : (!llvm.ptr) -> !llvm.ptr, i64
  %1 = llvm.load %0 : !llvm.ptr -> !llvm.ptr
  llvm.return %1 : !llvm.ptr
}}

llvm.func internal @{finish}(%context: i64, %status: i32) -> i32 attributes {{no_inline, passthrough = ["optsize"]}} {{
  %zero = llvm.mlir.constant(0 : i64) : i64
  %bad = llvm.mlir.constant(-1 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %words = llvm.inttoptr %context : i64 to !llvm.ptr
  %0 = llvm.getelementptr %words[{status}] : (!llvm.ptr) -> !llvm.ptr, i64
  %found = llvm.load %0 : !llvm.ptr -> i64
  %good = llvm.icmp "eq" %found, %zero : i64
  llvm.cond_br %good, ^done, ^failed
^done:
  llvm.return %status : i32
^failed:
  %size = llvm.mlir.constant(1024 : i64) : i64
  %message = llvm.alloca %size x i8 : (i64) -> !llvm.ptr
  %name = llvm.alloca %one x !llvm.ptr : (i32) -> !llvm.ptr
  %1 = llvm.getelementptr %words[{error_name}] : (!llvm.ptr) -> !llvm.ptr, i64
  %2 = llvm.load %1 : !llvm.ptr -> !llvm.ptr
  %code = llvm.trunc %found : i64 to i32
  %strings = llvm.mlir.addressof @__relayc_driver_strings : !llvm.ptr
  %kind = llvm.getelementptr %strings[{runtime_error}] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %kind, %name : !llvm.ptr, !llvm.ptr
  %3 = llvm.call %2(%code, %name) : !llvm.ptr, (i32, !llvm.ptr) -> i32
  %says = llvm.load %name : !llvm.ptr -> !llvm.ptr
  %4 = llvm.getelementptr %words[{failed}] : (!llvm.ptr) -> !llvm.ptr, i64
  %kernel = llvm.load %4 : !llvm.ptr -> i64
  %is_read = llvm.icmp "slt" %kernel, %zero : i64
  llvm.cond_br %is_read, ^read, ^launch
^read:
  %no_map = llvm.mlir.constant({map_failed} : i64) : i64
  %is_map = llvm.icmp "eq" %kernel, %no_map : i64
  %10 = llvm.getelementptr %strings[{read}] : (!llvm.ptr) -> !llvm.ptr, i8
  %11 = llvm.getelementptr %strings[{tensor_map}] : (!llvm.ptr) -> !llvm.ptr, i8
  %5 = llvm.select %is_map, %11, %10 : i1, !llvm.ptr
  %6 = llvm.call @snprintf(%message, %size, %5, %says) vararg(!llvm.func<i32 (ptr, i64, ptr, ...)>)
    : (!llvm.ptr, i64, !llvm.ptr, !llvm.ptr) -> i32
  llvm.br ^raise
^launch:
  %7 = llvm.getelementptr %strings[{launch_text}] : (!llvm.ptr) -> !llvm.ptr, i8
  %names = llvm.mlir.addressof @__relayc_kernel_names : !llvm.ptr
  %8 = llvm.getelementptr %names[%kernel] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr
  %which = llvm.load %8 : !llvm.ptr -> !llvm.ptr
{sizes}
  %9 = llvm.call @snprintf(%message, %size, %7, %which, {size_names}, %says) vararg(!llvm.func<i32 (ptr, i64, ptr, ...)>)
    : (!llvm.ptr, i64, !llvm.ptr, !llvm.ptr, {size_types}, !llvm.ptr) -> i32
  llvm.br ^raise
^raise:
  llvm.call @TVMFFIErrorSetRaisedFromCStr(%kind, %message) : (!llvm.ptr, !llvm.ptr) -> ()
  llvm.return %bad : i32
}}

// Notes an error of the driver, unless one was noted before.
llvm.func internal @__relayc_note(%words: !llvm.ptr, %result: i32, %what: i64)
    attributes {{no_inline, passthrough = ["cold", "optsize"]}} {{
  %0 = llvm.getelementptr %words[{status}] : (!llvm.ptr) -> !llvm.ptr, i64
  %code = llvm.zext %result : i32 to i64
  llvm.store %code, %0 : i64, !llvm.ptr
  %1 = llvm.getelementptr %words[{failed}] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %what, %1 : i64, !llvm.ptr
  llvm.return
}}

llvm.func internal @{launch}(%context: i64, %kernel: i64, %gx: i64, %gy: i64, %gz: i64, %bx: i64, %by: i64, %bz: i64, %shared: i64,
                             %places: !llvm.ptr) attributes {{no_inline}} {{
  %zero = llvm.mlir.constant(0 : i64) : i64
  %good = llvm.mlir.constant(0 : i32) : i32
  %two = llvm.mlir.constant(2 : i64) : i64
  %null = llvm.mlir.zero : !llvm.ptr
  %words = llvm.inttoptr %context : i64 to !llvm.ptr
  %0 = llvm.getelementptr %words[{status}] : (!llvm.ptr) -> !llvm.ptr, i64
  %before = llvm.load %0 : !llvm.ptr -> i64
  %goes_on = llvm.icmp "eq" %before, %zero : i64
  llvm.cond_br %goes_on, ^launch, ^end
^launch:
  %1 = llvm.getelementptr %words[{functions}] : (!llvm.ptr) -> !llvm.ptr, i64
  %table = llvm.load %1 : !llvm.ptr -> !llvm.ptr
  %row = llvm.mul %kernel, %two : i64
  %2 = llvm.getelementptr %table[%row] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %function = llvm.load %2 : !llvm.ptr -> !llvm.ptr
  %3 = llvm.getelementptr %2[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %known = llvm.load %3 : !llvm.ptr -> i64
  %bytes = llvm.intr.umax(%known, %shared) : (i64, i64) -> i64
  %4 = llvm.getelementptr %words[{stream}] : (!llvm.ptr) -> !llvm.ptr, i64
  %stream = llvm.load %4 : !llvm.ptr -> !llvm.ptr
  %5 = llvm.getelementptr %words[{launch_kernel}] : (!llvm.ptr) -> !llvm.ptr, i64
  %call = llvm.load %5 : !llvm.ptr -> !llvm.ptr
  %n0 = llvm.trunc %gx : i64 to i32
  %n1 = llvm.trunc %gy : i64 to i32
  %n2 = llvm.trunc %gz : i64 to i32
  %n3 = llvm.trunc %bx : i64 to i32
  %n4 = llvm.trunc %by : i64 to i32
  %n5 = llvm.trunc %bz : i64 to i32
  %n6 = llvm.trunc %bytes : i64 to i32
  %result = llvm.call %call(%function, %n0, %n1, %n2, %n3, %n4, %n5, %n6, %stream, %places, %null)
    : !llvm.ptr, (!llvm.ptr, i32, i32, i32, i32, i32, i32, i32, !llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
  %launched = llvm.icmp "eq" %result, %good : i32
  llvm.cond_br %launched, ^end, ^failed
^failed:
{notes}
  llvm.call @__relayc_note(%words, %result, %kernel) : (!llvm.ptr, i32, i64) -> ()
  llvm.br ^end
^end:
  llvm.return
}}

// The element of so many bytes at an address of the device; 0 where something has failed.
llvm.func internal @__relayc_read(%context: i64, %address: i64, %bytes: i64) -> i64 attributes {{no_inline}} {{
  %zero = llvm.mlir.constant(0 : i64) : i64
  %good = llvm.mlir.constant(0 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %what = llvm.mlir.constant({read_failed} : i64) : i64
  %words = llvm.inttoptr %context : i64 to !llvm.ptr
  %place = llvm.alloca %one x i64 : (i32) -> !llvm.ptr
  llvm.store %zero, %place : i64, !llvm.ptr
  %0 = llvm.getelementptr %words[{status}] : (!llvm.ptr) -> !llvm.ptr, i64
  %before = llvm.load %0 : !llvm.ptr -> i64
  %goes_on = llvm.icmp "eq" %before, %zero : i64
  llvm.cond_br %goes_on, ^copy, ^end(%zero : i64)
^copy:
  %1 = llvm.getelementptr %words[{stream}] : (!llvm.ptr) -> !llvm.ptr, i64
  %stream = llvm.load %1 : !llvm.ptr -> !llvm.ptr
  %2 = llvm.getelementptr %words[{copy_out}] : (!llvm.ptr) -> !llvm.ptr, i64
  %copy = llvm.load %2 : !llvm.ptr -> !llvm.ptr
  %copied = llvm.call %copy(%place, %address, %bytes, %stream) : !llvm.ptr, (!llvm.ptr, i64, i64, !llvm.ptr) -> i32
  %3 = llvm.icmp "eq" %copied, %good : i32
  llvm.cond_br %3, ^wait, ^failed(%copied : i32)
^wait:
  %4 = llvm.getelementptr %words[{synchronize}] : (!llvm.ptr) -> !llvm.ptr, i64
  %wait = llvm.load %4 : !llvm.ptr -> !llvm.ptr
  %waited = llvm.call %wait(%stream) : !llvm.ptr, (!llvm.ptr) -> i32
  %5 = llvm.icmp "eq" %waited, %good : i32
  llvm.cond_br %5, ^there, ^failed(%waited : i32)
^there:
  %found = llvm.load %place : !llvm.ptr -> i64
  llvm.br ^end(%found : i64)
^failed(%result: i32):
  llvm.call @__relayc_note(%words, %result, %what) : (!llvm.ptr, i32, i64) -> ()
  llvm.br ^end(%zero : i64)
^end(%value: i64):
  llvm.return %value : i64
}}

// Memory of the device; null where there is none.
llvm.func internal @__relayc_allocate(%context: i64, %bytes: i64) -> !llvm.ptr attributes {{no_inline}} {{
  %good = llvm.mlir.constant(0 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %null = llvm.mlir.zero : !llvm.ptr
  %words = llvm.inttoptr %context : i64 to !llvm.ptr
  %place = llvm.alloca %one x !llvm.ptr : (i32) -> !llvm.ptr
  %0 = llvm.getelementptr %words[{stream}] : (!llvm.ptr) -> !llvm.ptr, i64
  %stream = llvm.load %0 : !llvm.ptr -> !llvm.ptr
  %1 = llvm.getelementptr %words[{allocate}] : (!llvm.ptr) -> !llvm.ptr, i64
  %allocate = llvm.load %1 : !llvm.ptr -> !llvm.ptr
  %result = llvm.call %allocate(%place, %bytes, %stream) : !llvm.ptr, (!llvm.ptr, i64, !llvm.ptr) -> i32
  %found = llvm.load %place : !llvm.ptr -> !llvm.ptr
  %2 = llvm.icmp "eq" %result, %good : i32
  %3 = llvm.select %2, %found, %null : i1, !llvm.ptr
  llvm.return %3 : !llvm.ptr
}}

llvm.func internal @__relayc_release(%context: i64, %address: !llvm.ptr) attributes {{no_inline}} {{
  %words = llvm.inttoptr %context : i64 to !llvm.ptr
  %0 = llvm.getelementptr %words[{stream}] : (!llvm.ptr) -> !llvm.ptr, i64
  %stream = llvm.load %0 : !llvm.ptr -> !llvm.ptr
  %1 = llvm.getelementptr %words[{free}] : (!llvm.ptr) -> !llvm.ptr, i64
  %free = llvm.load %1 : !llvm.ptr -> !llvm.ptr
  %2 = llvm.call %free(%address, %stream) : !llvm.ptr, (!llvm.ptr, !llvm.ptr) -> i32
  llvm.return
}}
"""

_SIZES = ["%gx", "%gy", "%gz", "%bx", "%by", "%bz", "%bytes"]


def _notes() -> str:
    """Stores of the sizes of a launch that has failed."""
    return "\n".join(
        f"  %f{i} = llvm.getelementptr %words[{FAILED + 1 + i}] : (!llvm.ptr) -> !llvm.ptr, i64\n"
        f"  llvm.store {name}, %f{i} : i64, !llvm.ptr"
        for i, name in enumerate(_SIZES)
    )


def _noted() -> str:
    """Loads of them."""
    return "\n".join(
        f"  %p{i} = llvm.getelementptr %words[{FAILED + 1 + i}] : (!llvm.ptr) -> !llvm.ptr, i64\n"
        f"  %z{i} = llvm.load %p{i} : !llvm.ptr -> i64"
        for i in range(len(_SIZES))
    )


DRIVER_CALLS = _CALLS.format(
    context=CONTEXT,
    given=GIVEN_PLACE,
    finish=FINISH,
    launch=LAUNCH,
    given_word=GIVEN,
    status=STATUS,
    stream=STREAM,
    functions=FUNCTIONS,
    failed=FAILED,
    read_failed=READ,
    map_failed=TENSOR_MAP,
    launch_kernel=_PLACES["cuLaunchKernel"],
    copy_out=_PLACES["cuMemcpyDtoHAsync"],
    synchronize=_PLACES["cuStreamSynchronize"],
    allocate=_PLACES["cuMemAllocAsync"],
    free=_PLACES["cuMemFreeAsync"],
    error_name=_PLACES["cuGetErrorName"],
    launch_text=_AT["launch"],
    notes=_notes(),
    sizes=_noted(),
    size_names=", ".join(f"%z{i}" for i in range(len(_SIZES))),
    size_types=", ".join(["i64"] * len(_SIZES)),
    **{name: at for name, at in _AT.items() if name != "launch"},
) + _strings.as_global("__relayc_driver_strings")
"""The functions that host code calls, LAUNCH among them; they need the table @__relayc_kernel_names."""


# ---- tensor maps: cuda.h, cuTensorMapEncodeTiled, cuTensorMapEncodeIm2col -----------------------------------------------------------

_DATA_TYPES = {"i8": 0, "i16": 1, "i32": 2, "i64": 4, "f16": 6, "f32": 7, "f64": 8, "bf16": 9}
"""CUtensorMapDataType of elements; of integers that without a sign."""
SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
"""CUtensorMapSwizzle by the bytes of a line."""
_L2_PROMOTION = 2  # CU_TENSOR_MAP_L2_PROMOTION_L2_128B

_MAP = """
llvm.func internal @{name}(%context: i64, %map: i64, %address: i64, {parameters}) attributes {{no_inline}} {{
  %good = llvm.mlir.constant(0 : i32) : i32
  %what = llvm.mlir.constant({failed} : i64) : i64
  %type = llvm.mlir.constant({type} : i32) : i32
  %rank = llvm.mlir.constant({rank} : i32) : i32
  %swizzle = llvm.mlir.constant({swizzle} : i32) : i32
  %promotion = llvm.mlir.constant({promotion} : i32) : i32
  %sizes = llvm.alloca %rank x i64 : (i32) -> !llvm.ptr
  %strides = llvm.alloca %rank x i64 : (i32) -> !llvm.ptr
  %box = llvm.alloca %rank x i32 : (i32) -> !llvm.ptr
  %steps = llvm.alloca %rank x i32 : (i32) -> !llvm.ptr
  %lower = llvm.alloca %rank x i32 : (i32) -> !llvm.ptr
  %upper = llvm.alloca %rank x i32 : (i32) -> !llvm.ptr
{stores}
  %words = llvm.inttoptr %context : i64 to !llvm.ptr
  %0 = llvm.getelementptr %words[{encode}] : (!llvm.ptr) -> !llvm.ptr, i64
  %encode = llvm.load %0 : !llvm.ptr -> !llvm.ptr
  %result = llvm.call %encode(%map, %type, %rank, %address, %sizes, %strides, {copied}, %steps, %good, %swizzle, %promotion, %good)
    : !llvm.ptr, (i64, i32, i32, i64, !llvm.ptr, !llvm.ptr, {copied_types}, !llvm.ptr, i32, i32, i32, i32) -> i32
  %made = llvm.icmp "eq" %result, %good : i32
  llvm.cond_br %made, ^end, ^failed
^failed:
  llvm.call @__relayc_note(%words, %result, %what) : (!llvm.ptr, i32, i64) -> ()
  llvm.br ^end
^end:
  llvm.return
}}
"""


def data_type(element: ir.Type) -> int:
    """CUtensorMapDataType of an element type. Raises ValueError where there is none."""
    if str(element) not in _DATA_TYPES:
        raise ValueError(f"target cuda: tensor map: expected elements of {', '.join(_DATA_TYPES)}, found {element}")
    return _DATA_TYPES[str(element)]


def tensor_map_text(name: str, facts: Sequence[int]) -> str:
    """A function of a context, the address of the map, that of the tensor, its sizes and, in bytes, its strides but the innermost.

    Args:
      facts: numbers of the type and of the swizzle, how many dimensions there are, the box, and the numbers of the window where there is
        one.
    """
    type_, swizzle, rank, *rest = facts
    is_tiled = len(rest) == rank
    spatial = rank - 2
    box, window = (rest, []) if is_tiled else (rest[:2], rest[2:])
    corners = {"lower": window[:spatial], "upper": window[spatial : 2 * spatial]}
    steps = [1] * rank if is_tiled else [1, *window[2 * spatial :], 1]
    stores = []

    def store(array: str, i: int, value: str, element: str) -> None:
        stores.append(f"  %{array}{i} = llvm.getelementptr %{array}[{i}] : (!llvm.ptr) -> !llvm.ptr, {element}")
        stores.append(f"  llvm.store {value}, %{array}{i} : {element}, !llvm.ptr")

    for i in range(rank):
        store("sizes", i, f"%n{i}", "i64")
        if i:
            store("strides", i - 1, f"%n{rank + i - 1}", "i64")
    for array, constants in {"box": box, "steps": steps, **corners}.items():
        for i, constant in enumerate(constants):
            stores.append(f"  %{array}_{i} = llvm.mlir.constant({constant} : i32) : i32")
            store(array, i, f"%{array}_{i}", "i32")
    return _MAP.format(
        name=name,
        parameters=", ".join(f"%n{i}: i64" for i in range(2 * rank - 1)),
        failed=TENSOR_MAP,
        type=type_,
        rank=rank,
        swizzle=swizzle,
        promotion=_L2_PROMOTION,
        stores="\n".join(stores),
        encode=_PLACES["cuTensorMapEncodeTiled" if is_tiled else "cuTensorMapEncodeIm2col"],
        copied="%box" if is_tiled else "%lower, %upper, %box_0, %box_1",
        copied_types="!llvm.ptr" if is_tiled else "!llvm.ptr, !llvm.ptr, i32, i32",
    )
