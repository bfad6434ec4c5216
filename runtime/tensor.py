"""Tensors on devices, and arrays in and out: anything that speaks DLPack as a numpy array, and a numpy array as a tvm-ffi tensor.

DLPack packs elements of less than a byte, arrays have one in a byte: as tensors these are uint8, the bits of the elements.
"""

import ctypes
import sys
from typing import Any

import numpy as np
import tvm_ffi

from relayc.runtime.artifact import DLPACK_CODES, SUB_BYTE, is_numpys, numpy_dtype
from relayc.runtime.device import Device, DeviceError, device_kind, device_of
from relayc.runtime.dlpack import VERSION, imported

_DTYPE_CODE_OFFSET = 32 + 20  # of DLManagedTensorVersioned.dl_tensor.dtype.code
_HOST = 1  # kDLCPU: memory that numpy can see
_LEGACY_STREAM, _NO_WAIT = 1, -1
"""DLPack's numbers of a device's default stream, and of none that would have to wait."""

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def to_tensor(array: np.ndarray) -> tvm_ffi.Tensor:
    """The memory of `array` as a tvm-ffi tensor, which keeps the array alive."""
    if is_numpys(array.dtype):
        return tvm_ffi.from_dlpack(array.__dlpack__(max_version=VERSION))
    # numpy exports only its own dtypes: export the bits, then set the dtype.
    capsule = array.view(f"u{array.dtype.itemsize}").__dlpack__(max_version=VERSION)
    code = DLPACK_CODES.get(array.dtype.name)
    if code is not None:
        address = _capsule_pointer(capsule, b"dltensor_versioned")
        ctypes.c_uint8.from_address(address + _DTYPE_CODE_OFFSET).value = code
    return tvm_ffi.from_dlpack(capsule)


def to_argument(array: np.ndarray) -> np.ndarray | tvm_ffi.Tensor:
    """`array` as an argument of a packed function: itself if tvm-ffi accepts it, which is faster than a tensor."""
    return array if is_numpys(array.dtype) and array.flags.writeable else to_tensor(array)


def _place(tensor: tvm_ffi.Tensor) -> str:
    """The device of a tensor: under the name of its kind, or of a kind that nobody registered under that of tvm-ffi."""
    try:
        return str(device_of(tensor))
    except DeviceError:
        return str(tensor.device)


class _Memory:
    """The memory of a tvm-ffi tensor in numpy's array interface."""

    def __init__(self, tensor: tvm_ffi.Tensor, dtype: np.dtype) -> None:
        self.owner = tensor
        self.__array_interface__ = {
            "version": 3,
            "data": (tensor.data_ptr(), False),
            "shape": tuple(tensor.shape),
            "strides": tuple(stride * dtype.itemsize for stride in tensor.strides),
            "typestr": dtype.str,
        }


def is_torch(value: Any) -> bool:
    """Whether a value is a tensor of torch, which is not imported for that."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def from_torch(tensor: Any) -> np.ndarray:
    """A torch tensor as an array that shares its memory, in a third of the time that DLPack takes. Raises as `as_array` does."""
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.is_neg():
        tensor = tensor.resolve_neg()
    bits = _torch_bits().get(tensor.dtype)
    if tensor.device.type != "cpu" or tensor.is_sparse or bits is False:
        return _from_dlpack(tensor)
    if bits is None:
        array: np.ndarray = tensor.numpy()
        return array
    exchange, dtype = bits
    return tensor.view(exchange).numpy().view(dtype)


_DIRECT: dict[Any, np.dtype] = {}
"""By torch dtype, the equal numpy dtype."""


def is_direct_torch(value: Any, dtype: np.dtype | None) -> bool:
    """Whether tvm-ffi takes a value as it is: a contiguous torch tensor of this numpy dtype in the host's memory, without a gradient."""
    torch = sys.modules.get("torch")
    if torch is None or type(value) is not torch.Tensor:
        return False
    if not _DIRECT:
        names = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")
        _DIRECT.update({getattr(torch, name): np.dtype(name) for name in names})
    is_plain = value.is_cpu and value.layout is torch.strided and not value.requires_grad and not value.is_neg()
    return is_plain and _DIRECT.get(value.dtype) is dtype and value.is_contiguous()


def to_torch(array: np.ndarray) -> Any:
    """An array as a torch tensor that shares its memory; torch is imported already."""
    torch = sys.modules["torch"]
    if is_numpys(array.dtype):
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(f"i{array.dtype.itemsize}")).view(getattr(torch, array.dtype.name))


def parts_of(value: Any) -> Any:
    """Complex numbers as their parts along a last axis. Raises TypeError for a value that is no tensor or array of complex numbers."""
    if is_torch(value) and value.is_complex():
        return sys.modules["torch"].view_as_real(value.detach().resolve_conj())
    if isinstance(value, np.ndarray) and value.dtype.kind == "c":
        return np.ascontiguousarray(value).reshape(*value.shape, 1).view(value.real.dtype)
    raise TypeError(f"expected complex numbers, found {getattr(value, 'dtype', type(value).__name__)}")


def of_parts(value: Any) -> Any:
    """A tensor of torch, or an array, of the complex numbers whose parts are along its last axis."""
    if is_torch(value):
        return sys.modules["torch"].view_as_complex(value)
    array = np.asarray(value)
    return array.view(f"c{2 * array.dtype.itemsize}").reshape(array.shape[:-1])


_BITS: dict[Any, Any] = {}


def _torch_bits() -> dict[Any, Any]:
    """By torch dtype that numpy lacks: the torch dtype of its bits and its dtype here; False for what only DLPack may know."""
    if not _BITS:
        torch = sys.modules["torch"]
        for name in DLPACK_CODES:
            if hasattr(torch, name):
                dtype = numpy_dtype(name)
                _BITS[getattr(torch, name)] = torch.int16 if dtype.itemsize == 2 else torch.uint8, dtype
        for name in ("complex32", "quint8", "qint8", "qint32"):
            if hasattr(torch, name):
                _BITS[getattr(torch, name)] = False
    return _BITS


def as_array(value: Any) -> np.ndarray:
    """A numpy array, numpy scalar or DLPack tensor (of torch, tvm-ffi, ...) in the host's memory as a numpy array that shares its memory.

    Raises:
      TypeError: `value` is none of these, cannot be exported through DLPack, or has a dtype that numpy and ml_dtypes do not know.
      ValueError: the tensor is on another device, or the array is masked.
    """
    if isinstance(value, np.ma.MaskedArray):
        raise ValueError("found a masked array, whose mask would be lost: give value.filled(...) or value.data")
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    if not hasattr(value, "__dlpack__"):
        raise TypeError(f"found a value of type {type(value).__name__}")
    if is_torch(value) and not value.requires_grad:
        return from_torch(value)
    return _from_dlpack(value)


def _from_dlpack(value: Any) -> np.ndarray:
    tensor = value if isinstance(value, tvm_ffi.Tensor) else imported(value)
    if tensor.device.dlpack_device_type() != _HOST:
        raise ValueError(f"found a tensor on {_place(tensor)}")
    try:
        dtype = numpy_dtype(str(tensor.dtype))
    except TypeError:
        raise TypeError(f"found a tensor of dtype {tensor.dtype}") from None
    if dtype.name in SUB_BYTE:
        raise TypeError(f"found a tensor of packed {tensor.dtype}, expected an array of one element in a byte, as ml_dtypes has them")
    if tensor.numel() == 0:
        return np.empty(tuple(tensor.shape), dtype)
    # A dtype of ml_dtypes is not a type of the array interface: its bits are.
    exchange = dtype if is_numpys(dtype) else np.dtype(f"u{dtype.itemsize}")
    return np.asarray(_Memory(tensor, exchange)).view(dtype)


_DTYPES: dict[str, np.dtype] = {}
"""Dtypes of tensors that `borrowed` has seen."""


def borrowed(tensor: tvm_ffi.Tensor) -> np.ndarray:
    """A tensor in the host's memory as an array, to be used only as long as the tensor: in less time than `as_array` takes.

    Raises TypeError as `as_array` does.
    """
    count = tensor.numel()
    dtype = _DTYPES.get(tensor.dtype)
    if dtype is None or count == 0 or not tensor.is_contiguous():
        found = as_array(tensor)
        _DTYPES[tensor.dtype] = found.dtype
        return found
    memory: Any = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(tensor.data_ptr())
    return np.ndarray(tuple(tensor.shape), dtype, memory)


class Tensor:
    """A tensor on a device, contiguous in row-major order. It speaks DLPack, so functions of a module take it, and so do other frameworks.

    `Device.empty` and `Device.tensor` make tensors.

    Attributes:
      data: the tvm-ffi tensor underneath, which owns the memory.
      device, shape, dtype: where it is, its dimensions, the name of its dtype.
      stream: of the device, that has its contents once it has done what it was given.
    """

    def __init__(self, data: tvm_ffi.Tensor, stream: int = 0) -> None:
        self.data, self.stream = data, stream
        self.device: Device = device_of(data)
        self.shape = tuple(int(extent) for extent in data.shape)
        self.dtype = str(data.dtype)

    def numpy(self) -> np.ndarray:
        """A copy in the host's memory."""
        self.device.synchronize()
        return device_kind(self.device.kind).to_numpy(self.data)

    asnumpy = numpy  # Relay's older name

    def to(self, device: "Device | str") -> "Tensor":
        """A copy on a device, which may be the one it is on.

        Raises:
          DeviceError: the device is not known or does not exist.
        """
        return Device(device).tensor(self)

    def copy_from(self, value: Any) -> None:
        """Writes what an array, or a tensor of any device, holds.

        Raises:
          TypeError: no array or tensor, or one of another dtype.
          ValueError: another shape.
        """
        kind = device_kind(self.device.kind)
        if isinstance(value, Tensor):
            self._check(value.shape, value.dtype)
            if value.device.kind == self.device.kind:
                kind.copy(value.data, self.data)
            else:
                kind.from_numpy(value.numpy(), self.data)
            return
        if hasattr(value, "__dlpack_device__") and not isinstance(value, np.ndarray) and device_of(value).kind == self.device.kind != "cpu":
            taken = kind.taken(self.device.index, value)
            self._check(tuple(taken.shape), str(taken.dtype))
            kind.copy(taken, self.data)
            return
        array = as_array(value)
        self._check(array.shape, array.dtype.name)
        kind.from_numpy(np.ascontiguousarray(array).reshape(array.shape), self.data)

    def _check(self, shape: tuple[int, ...], dtype: str) -> None:
        if dtype != self.dtype:
            raise TypeError(f"tensor on {self.device}: expected dtype {self.dtype}, found {dtype}")
        if shape != self.shape:
            raise ValueError(f"tensor on {self.device}: expected shape {list(self.shape)}, found {list(shape)}")

    def __dlpack__(self, *, stream: int | None = None, **options: Any) -> Any:
        """The capsule; `stream` of the device, in DLPack's numbers, waits for the contents."""
        stream = _LEGACY_STREAM if stream is None else stream  # DLPack: without a stream the consumer works on the default one
        to = {_LEGACY_STREAM: 0, _NO_WAIT: self.stream}.get(stream, stream)
        device_kind(self.device.kind).hand_over(self.data, self.stream, to, is_exported=True)
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device.__dlpack_device__()

    def __repr__(self) -> str:
        return f"<relayc tensor {self.dtype}[{', '.join(map(str, self.shape))}] on {self.device}>"
