"""The peak of a GPU: the rate of its multiprocessors at their highest frequency, and the measured bandwidth of a copy."""

import time
from functools import cache

from relayc.runtime.cuda.driver import DeviceAttributes, driver
from relayc.runtime.device import Device, DeviceError, device_kind
from relayc.runtime.profile import Peak

_F32_LANES = {(7, 5): 64, (8, 0): 64}
_OTHER_F32_LANES = 128
"""Multiply-adds of f32 that a multiprocessor does in a cycle (CUDA C++ Programming Guide, "Arithmetic Instructions")."""
_TENSOR_FLOPS = {(7, 5): 1024, (8, 0): 2048, (9, 0): 4096, (10, 0): 8192}
_OTHER_TENSOR_FLOPS = 1024
"""Operations of dense products of 16-bit floats that its tensor cores do in a cycle (white papers of the architectures)."""
_COPY_BYTES = 1 << 28
_COPIES = 10


@cache
def quick_peak(threads: int) -> Peak:
    """The peak of device 0; `threads` are threads of the host, which compute nothing.

    Raises:
      ImportError: there is no device.
    """
    try:
        attributes = driver().usable(0)
        gbytes = copy_gbytes(min(_COPY_BYTES, attributes.memory_bytes // 8))
    except DeviceError as error:
        raise ImportError(str(error)) from None
    f32, tensor = compute_gflops(attributes)
    return Peak(threads, f32, gbytes, gbytes, tensor)


def compute_gflops(attributes: DeviceAttributes) -> tuple[float, float]:
    """10^9 operations per second of f32 multiply-adds, and of products of 16-bit floats on tensor cores."""
    cycles = attributes.multiprocessors * attributes.clock_hertz / 1e9
    lanes = _F32_LANES.get(attributes.capability, _OTHER_F32_LANES)
    return 2 * lanes * cycles, _TENSOR_FLOPS.get(attributes.capability, _OTHER_TENSOR_FLOPS) * cycles


def copy_gbytes(num_bytes: int) -> float:
    """10^9 bytes per second that copies within device 0 read and write."""
    device, kind = Device("cuda", 0), device_kind("cuda")
    source, destination = (device.empty((num_bytes,), "uint8") for _ in range(2))
    least = float("inf")
    for _ in range(3):  # the first round may wait for earlier work, and the least time counts
        start = time.perf_counter()
        for _ in range(_COPIES):
            kind.copy(source.data, destination.data)
        device.synchronize()
        least = min(least, time.perf_counter() - start)
    return 2 * num_bytes * _COPIES / least / 1e9
