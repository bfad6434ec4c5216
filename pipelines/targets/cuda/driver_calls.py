"""Calls of the driver's functions, as text in the LLVM dialect; runtime.cuda.context describes the contents of a context."""

from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.pipelines.emission.mlir_text import loaded_word, mlir_texts, stored_word
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
_MLIR = mlir_texts(__file__)
_CALLS = _MLIR["calls"]

_SIZES = ["%gx", "%gy", "%gz", "%bx", "%by", "%bz", "%bytes"]

DRIVER_CALLS = _CALLS.substitute(
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
    notes="\n".join(stored_word(name, "%words", FAILED + 1 + i) for i, name in enumerate(_SIZES)),
    sizes="\n".join(loaded_word(f"z{i}", "%words", FAILED + 1 + i) for i in range(len(_SIZES))),
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

_MAP = _MLIR["map"]


def data_type(element: ir.Type) -> int:
    """CUtensorMapDataType of an element type. Raises ValueError if there is none."""
    if str(element) not in _DATA_TYPES:
        raise ValueError(f"target cuda: tensor map: expected elements of {', '.join(_DATA_TYPES)}, found {element}")
    return _DATA_TYPES[str(element)]


def tensor_map_text(name: str, facts: Sequence[int]) -> str:
    """A function of a context, the address of the map, the address of the tensor, its sizes, and its strides in bytes except the innermost.

    Args:
      facts: the numbers of the type and of the swizzle, the number of dimensions, the box, and the numbers of the window, if there is one.
    """
    type_, swizzle, rank, *rest = facts
    is_tiled = len(rest) == rank
    spatial = rank - 2
    box, window = (rest, []) if is_tiled else (rest[:2], rest[2:])
    corners = {"lower": window[:spatial], "upper": window[spatial : 2 * spatial]}
    steps = [1] * rank if is_tiled else [1, *window[2 * spatial :], 1]
    stores = []
    for i in range(rank):
        stores.append(stored_word(f"%n{i}", "%sizes", i))
        if i:
            stores.append(stored_word(f"%n{rank + i - 1}", "%strides", i - 1))
    for array, constants in {"box": box, "steps": steps, **corners}.items():
        for i, constant in enumerate(constants):
            stores.append(f"  %{array}_{i} = llvm.mlir.constant({constant} : i32) : i32")
            stores.append(stored_word(f"%{array}_{i}", f"%{array}", i, "i32"))
    return _MAP.substitute(
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
