"""The kernels of a program as they are kept: cubins and PTX for several architectures side by side, and what a launch must know."""

import json
import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

ARGUMENT_ALIGNMENT = 16
"""Bytes that every tensor which a kernel is given begins at a multiple of, unless it is a view that the program itself takes: device code
loads so many bytes at once. Whoever calls a program from outside checks that."""

_MAGIC = b"relayc images 1\n"
_HEAD = struct.Struct("<16sQ")


class NoImage(ValueError):
    """A program has no code for a device."""


@dataclass(frozen=True)
class Image:
    """A kernel for an architecture.

    Attributes:
      arch: "sm_80", "sm_90a": code with a letter after the number runs on this architecture only.
      ptx: compiled by the driver if there is no cubin for the device.
      cubin: machine code; b"" if ptxas was not available.
      report: output of ptxas.
    """

    arch: str
    ptx: str
    cubin: bytes = b""
    report: str = ""

    @property
    def capability(self) -> tuple[int, int]:
        """Compute capability: (9, 0) of sm_90a."""
        digits = self.arch.removeprefix("sm_").rstrip("abcdefghijklmnopqrstuvwxyz")
        return int(digits[:-1]), int(digits[-1])

    @property
    def is_specific(self) -> bool:
        """Whether it runs on its architecture alone."""
        return self.arch[-1].isalpha()

    def has_cubin_for(self, capability: tuple[int, int]) -> bool:
        """Whether its cubin runs on devices of a capability: of the same, or of the same major and a larger minor number."""
        if not self.cubin:
            return False
        own = self.capability
        return own == capability if self.is_specific else own[0] == capability[0] and own[1] <= capability[1]

    def has_ptx_for(self, capability: tuple[int, int]) -> bool:
        """Whether the driver can compile its PTX for devices of a capability."""
        return self.capability == capability if self.is_specific else self.capability <= capability


@dataclass(frozen=True)
class KernelImages:
    """A kernel for all architectures it was compiled for.

    Attributes:
      name: its name in every image.
      threads: the most threads of a block.
      static_shared_bytes: shared memory that the code itself asks for.
      dynamic_shared_bytes: shared memory that a launch must ask for.
    """

    name: str
    threads: int
    static_shared_bytes: int
    dynamic_shared_bytes: int
    images: tuple[Image, ...]

    def of(self, arch: str) -> Image:
        """The image of an architecture. Raises NoImage if there is none."""
        for image in self.images:
            if image.arch == arch:
                return image
        raise NoImage(f"kernel {self.name}: expected an architecture out of {self._archs()}, found {arch}")

    def for_device(self, capability: tuple[int, int]) -> dict[str, bytes]:
        """What a device of a compute capability can load, by name, best first: the cubin of the nearest architecture, then the PTX of the
        nearest one ("cubin of sm_90a"; PTX is closed by a zero byte, as the driver takes it). A driver that is older than a cubin refuses
        the cubin, and compiles the PTX.

        Raises:
          NoImage: nothing runs on such devices.
        """

        def nearness(image: Image) -> tuple[tuple[int, int], bool]:
            return image.capability, image.is_specific

        candidates: dict[str, bytes] = {}
        if cubins := [image for image in self.images if image.has_cubin_for(capability)]:
            nearest = max(cubins, key=nearness)
            candidates[f"cubin of {nearest.arch}"] = nearest.cubin
        if texts := [image for image in self.images if image.has_ptx_for(capability)]:
            nearest = max(texts, key=nearness)
            candidates[f"PTX of {nearest.arch}"] = nearest.ptx.encode() + b"\0"
        if candidates:
            return candidates
        found = ".".join(map(str, capability))
        raise NoImage(f"kernel {self.name}: expected a device that runs code for {self._archs()}, found one of compute capability {found}")

    def _archs(self) -> str:
        return ", ".join(image.arch for image in self.images)


@dataclass(frozen=True)
class Images:
    """The kernels of a program, by name."""

    kernels: Mapping[str, KernelImages]

    @staticmethod
    def of(kernels: Iterable[KernelImages]) -> "Images":
        return Images({kernel.name: kernel for kernel in kernels})

    def to_bytes(self) -> bytes:
        """Everything, compressed."""
        parts: list[bytes] = []
        rows = []
        for kernel in self.kernels.values():
            images = []
            for image in kernel.images:
                packed = [zlib.compress(part) for part in (image.ptx.encode(), image.cubin, image.report.encode())]
                parts += packed
                images.append([image.arch, *map(len, packed)])
            rows.append([kernel.name, kernel.threads, kernel.static_shared_bytes, kernel.dynamic_shared_bytes, images])
        text = json.dumps(rows, separators=(",", ":")).encode()
        return b"".join([_HEAD.pack(_MAGIC, len(text)), text, *parts])

    @staticmethod
    def from_bytes(data: bytes) -> "Images":
        """The inverse of `to_bytes`. Raises ValueError for other bytes."""
        try:
            magic, size = _HEAD.unpack_from(data)
            if magic != _MAGIC:
                raise ValueError(f"expected {_MAGIC!r}, found {magic!r}")
            at = _HEAD.size + size
            kernels = []
            for name, threads, static, dynamic, rows in json.loads(data[_HEAD.size : at]):
                images = []
                for arch, *sizes in rows:
                    contents = []
                    for length in sizes:
                        contents.append(zlib.decompress(data[at : at + length]))
                        at += length
                    ptx, cubin, report = contents
                    images.append(Image(arch, ptx.decode(), cubin, report.decode()))
                kernels.append(KernelImages(name, threads, static, dynamic, tuple(images)))
        except (struct.error, TypeError, ValueError, zlib.error) as error:
            raise ValueError(f"images of kernels: expected what Images.to_bytes gave, found other data: {error}") from error
        return Images.of(kernels)
