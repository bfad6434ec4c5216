"""Tensor maps: descriptors of tensors for the tensor memory accelerator (TMA), created by the host and passed to kernels.

The contract. A function of the tir stage allocates a map, `%m = memref.alloca() : memref<128xi8>`, and lets the host fill it by
`relay.tensor_map(%m, %buffer, %numbers...)` before the launch that uses it. In the launch nvvm operations take the address of `%m` as a
tensor map. An outlined kernel takes it as an argument; `mark_tensor_maps` marks these arguments (TENSOR_MAP). Then:

- device code turns such an argument into a `__grid_constant__` of 128 bytes passed by value (llvm.byval, aligned to 64);
- host code fills the 128 bytes by cuTensorMapEncodeTiled, or for a window by cuTensorMapEncodeIm2col, from the fields that `TensorMap.of`
  reads from the operation, and passes them by value;
- the emulation writes the same numbers itself (`emulate_tensor_maps`), in the layout of `word`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from relayc.dialects.discardable import TENSOR_MAP
from relayc.dialects.functions import walk_functions
from relayc.dialects.mlir import gpu, ir
from relayc.dialects.relay.later import TensorMap as TensorMapOp
from relayc.pipelines.emission import emit

MAP_BYTES, MAP_ALIGNMENT = 128, 64
MOST_RANK = 5
SWIZZLE_BYTES = 128
_SWIZZLES, _LINE_UNIT = (0, 32, 64, 128), 16
"""Units: bytes."""
_MOST_BOX, _MOST_PIXELS = 256, 1024
"""Limits of the extent of a box along a dimension, and of the pixels of a copy."""


@dataclass(frozen=True)
class Window:
    """A window of pixels for copies (PTX ISA, "im2col mode"). Numbers are for the spatial dimensions, innermost first.

    Attributes:
      lower: the first pixel along each dimension, -128 to 127.
      upper: the last pixel, relative to the last pixel of the tensor, -128 to 127.
      steps: from one pixel to the next, 1 to 8.
    """

    lower: Sequence[int]
    upper: Sequence[int]
    steps: Sequence[int]

    @property
    def numbers(self) -> list[int]:
        return [*self.lower, *self.upper, *self.steps]

    @staticmethod
    def of(numbers: Sequence[int]) -> "Window | None":
        """The window of a list of numbers; None for an empty list."""
        count = len(numbers) // 3
        return Window(*(list(numbers[i * count :][:count]) for i in range(3))) if numbers else None


@dataclass(frozen=True)
class TensorMap:
    """A tensor in memory, and the box of it that a copy transfers. Dimensions are innermost first, as in the driver.

    Attributes:
      element: element type.
      buffer: operand of the host that holds the tensor.
      offset: position of its first element in the buffer (index).
      sizes: of each dimension (index). Elements beyond are read as 0.
      strides: in elements, of each dimension except the innermost, which is contiguous (index); in bytes multiples of 16, as is the address
        of the first element.
      box: elements of a copy along each dimension, at most 256; the innermost one fills `swizzle` bytes. With a window: channels, which are
        the innermost dimension, and pixels of a copy.
      swizzle: bytes of a line in shared memory: within eight lines, 16-byte chunk c of line i is at c ^ i.
      window: for copies of consecutive pixels in a window, row by row and image by image; None for boxes.
    """

    element: ir.Type
    buffer: ir.Value
    offset: ir.Value
    sizes: Sequence[ir.Value]
    strides: Sequence[ir.Value]
    box: Sequence[int]
    swizzle: int = SWIZZLE_BYTES
    window: Window | None = None

    def emit(self) -> ir.Value:
        """Creates the map, at the ambient insertion point in host code. Raises ValueError for a map that the driver would refuse."""
        self._check()
        attributes = {
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0]),
            "alignment": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), MAP_ALIGNMENT),
        }
        memory = emit.create("memref.alloca", [ir.MemRefType.get([MAP_BYTES], ir.IntegerType.get_signless(8))], [], attributes)
        numbers = [self.offset, *self.sizes, *self.strides]
        facts = {
            "box": ir.DenseI64ArrayAttr.get(list(self.box)),
            "swizzle": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), self.swizzle),
            "window": ir.DenseI64ArrayAttr.get(self.window.numbers if self.window is not None else []),
        }
        emit.create(TensorMapOp.OPERATION_NAME, [], [memory, self.buffer, *numbers], facts)
        return memory

    def _check(self) -> None:
        """Checks the limits of cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col that do not depend on run-time sizes and strides."""
        line = self.box[0] * self.element.width // 8
        limits = [
            ("dimensions", len(self.sizes), 1 if self.window is None else 3, MOST_RANK),
            *(("box", extent, 1, _MOST_BOX) for extent in (self.box if self.window is None else self.box[:1])),
        ]
        if self.window is not None:
            limits.append(("pixels of a copy", self.box[1], 1, _MOST_PIXELS))
            limits += [("corner", corner, -128, 127) for corner in (*self.window.lower, *self.window.upper)]
            limits += [("step", step, 1, 8) for step in self.window.steps]
        for what, found, least, most in limits:
            if not least <= found <= most:
                raise ValueError(f"tensor map: {what}: expected {least} to {most}, found {found}")
        if self.swizzle not in _SWIZZLES or line % _LINE_UNIT or (self.swizzle and line > self.swizzle):
            expected = f"a swizzle of {', '.join(map(str, _SWIZZLES))} bytes and lines of a multiple of {_LINE_UNIT} bytes that fit"
            raise ValueError(f"tensor map: expected {expected}, found a swizzle of {self.swizzle} and lines of {line} bytes")

    @staticmethod
    def of(op: ir.OpView) -> "TensorMap":
        """The tensor map of an operation `relay.tensor_map`."""
        rank = len(op.numbers) // 2
        offset, *numbers = op.numbers
        element, window = op.buffer.type.element_type, Window.of(op.window)
        return TensorMap(element, op.buffer, offset, numbers[:rank], numbers[rank:], list(op.box), op.swizzle, window)


def tensor_map_of(value: ir.Value) -> ir.OpView | None:
    """The operation that fills a buffer of the host as a tensor map; None for any other value."""
    uses = [use.owner for use in value.uses if use.operand_number == 0]
    return next((op for op in uses if op.operation.name == TensorMapOp.OPERATION_NAME), None)


def mark_tensor_maps(module: ir.Module) -> None:
    """Sets the attribute TENSOR_MAP on the arguments of outlined kernels that are tensor maps, in place."""
    kernels = {}
    for op in module.body.operations:
        if isinstance(op, gpu.GPUModuleOp):
            for kernel in op.operation.regions[0].blocks[0].operations:
                kernels[ir.StringAttr(kernel.operation.attributes["sym_name"]).value] = kernel
    for launch in walk_functions(module, gpu.LaunchFuncOp):
        operands = list(launch.kernelOperands)
        marked = [i for i, value in enumerate(operands) if tensor_map_of(value) is not None]
        if not marked:
            continue
        kernel = kernels[launch.kernel.value[-1]]
        with module.context:
            # Outlining gives arguments no other attributes.
            found = [ir.DictAttr.get(TENSOR_MAP.entry(i in marked)) for i in range(len(operands))]
            kernel.operation.attributes["arg_attrs"] = ir.ArrayAttr.get(found)


def map_arguments(kernel: ir.Operation) -> frozenset[int]:
    """Positions of the arguments of a gpu.func that are tensor maps."""
    if "arg_attrs" not in kernel.attributes:
        return frozenset()
    return frozenset(i for i, named in enumerate(ir.ArrayAttr(kernel.attributes["arg_attrs"])) if TENSOR_MAP.on(ir.DictAttr(named)))


# ---- on the CPU -------------------------------------------------------------------------------------------------------------------


def word(rank: int, what: str, dimension: int = 0) -> int:
    """Position of an 8-byte word of an emulated map: the address ("base"), the "size", "stride" (in bytes) or "box" of a dimension, or the
    "window", after a box of two numbers: one byte per number."""
    return {"base": 0, "size": 1, "stride": 1 + rank, "box": 1 + 2 * rank, "window": 3 + 2 * rank}[what] + dimension


def emulate_tensor_maps(module: ir.Module) -> None:
    """Replaces the operations that fill tensor maps by stores, in place: words as `word` gives, including the innermost stride."""
    with module.context:
        for op in walk_functions(module, TensorMapOp):
            with ir.InsertionPoint(op), op.operation.location:
                found = TensorMap.of(op)
                if found.swizzle != SWIZZLE_BYTES:  # the swizzle of copies on the CPU
                    raise ValueError(f"tensor map on the CPU: expected a swizzle of {SWIZZLE_BYTES} bytes, found {found.swizzle}")
                _store_words(op.operation.operands[0], found)
            op.operation.erase()


def _store_words(memory: ir.Value, map_: TensorMap) -> None:
    i64, index = ir.IntegerType.get_signless(64), ir.IndexType.get()
    rank, bytes_ = len(map_.sizes), emit.index_constant(map_.element.width // 8)
    words = emit.create("memref.view", [ir.MemRefType.get([MAP_BYTES // 8], i64)], [memory, emit.index_constant(0)])
    base = emit.create("memref.extract_aligned_pointer_as_index", [index], [map_.buffer])
    found = {word(rank, "base"): emit.arith("addi", base, emit.arith("muli", map_.offset, bytes_))}
    strides = [emit.index_constant(1), *map_.strides]
    for i, (size, stride) in enumerate(zip(map_.sizes, strides, strict=True)):
        found[word(rank, "size", i)] = size
        found[word(rank, "stride", i)] = emit.arith("muli", stride, bytes_)
    for i, box in enumerate(map_.box):
        found[word(rank, "box", i)] = emit.index_constant(box)
    if map_.window is not None:
        found[word(rank, "window")] = emit.index_constant(sum((n & 255) << 8 * i for i, n in enumerate(map_.window.numbers)))
    for place, value in found.items():
        emit.create("memref.store", [], [emit.create("arith.index_cast", [i64], [value]), words, emit.index_constant(place)])
