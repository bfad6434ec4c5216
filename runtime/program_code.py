"""The code of a compiled program as functions on arrays, and the memory that their calls share."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tvm_ffi

from relayc.runtime.arenas import ArenaPool
from relayc.runtime.artifact import Artifact, ProgramInfo, is_host_dtype
from relayc.runtime.device import Device, device_kind
from relayc.runtime.device_arenas import DeviceArenas
from relayc.runtime.device_function import DeviceFunction
from relayc.runtime.function import Function
from relayc.runtime.host import HOST_PREFIX, ProgramStrings
from relayc.runtime.stepwise import call_sites, depends_on_sizes_only
from relayc.runtime.threads import Team, Within

if TYPE_CHECKING:
    from relayc.runtime.native import NativeCode
    from relayc.runtime.native_info import Link


class ProgramCode:
    """The functions of an artifact.

    Attributes:
      programs, kernels: what is known of each, by name.
      functions: the public programs, then the kernels, by name. If the machine lacks features of the target, they raise RuntimeError.
      arenas: the arenas of calls on the host; None for a program that runs on a device.
    """

    def __init__(self, artifact: Artifact) -> None:
        """
        Raises:
          DeviceError: the program is for a kind of device that nobody registered.
          RuntimeError: the system refuses the process what the program needs.
        """
        self._artifact = artifact
        self.programs = {program.name: program for program in artifact.programs}
        self.kernels = {kernel.name: kernel for kernel in artifact.kernels}
        grows = any(program.symbols for program in artifact.programs)
        self.arenas = ArenaPool(artifact.params, grows) if device_kind(artifact.device).is_host else None
        self._device = Device(artifact.device)
        self._device_arenas = None if self.arenas is not None else DeviceArenas(device_kind(artifact.device), artifact.params)
        self._strings = ProgramStrings(artifact.strings)
        self._native: NativeCode | None = None
        if not artifact.lacking:
            device_kind(self._device.kind).request(artifact.permissions)
            if artifact.native is not None:
                self._native = self.native()
        names = [*(program.name for program in artifact.programs if program.public), *self.kernels]
        self.functions = {name: self._make_function(name, artifact.functions[name]) for name in names}

    def packed(self, kernel: str) -> tvm_ffi.Function:
        """The packed function of a kernel."""
        return self.functions[kernel].packed

    def set_params(self, params: np.ndarray) -> None:
        """Replaces the values of the parameters, for calls that begin from now on."""
        for memory in (self.arenas, self._device_arenas, self._native):
            if memory is not None:
                memory.set_params(params)

    def native(self, constructors: Mapping[str, Sequence[Any]] | None = None, **conversions: Any) -> "NativeCode":
        """The functions of a program with values that are no tensors, linked to its kernels; those of before are no longer to be called.

        Args:
          constructors, conversions: as of NativeCode.
        """
        from relayc.runtime.native import NativeCode, on_tensors

        def kernel(link: "Link") -> Callable[..., Any]:
            function = self._make_function(link.name, self._artifact.functions[link.name])
            function.team = Within()
            return on_tensors(function, link.types)

        artifact = self._artifact
        assert artifact.native is not None
        linked = artifact.native, artifact.functions, artifact.keep_alive
        found = NativeCode(*linked, kernel, lambda link: kernel(link)(), constructors, Team(), **conversions)
        found.set_params(artifact.params)
        return found

    def _make_function(self, name: str, address: int) -> Any:
        if self._native is not None and any(f.name == name for f in self._native.info.functions):
            return self._native.function(name)
        if self._artifact.lacking:
            packed = tvm_ffi.convert(self._refuse)
        else:
            packed = tvm_ffi.Function.__from_extern_c__(address, keep_alive_object=self._artifact.keep_alive)
            packed.release_gil = True
        if name in self.programs:
            program, arenas = self.programs[name], self.arenas
        else:
            info, arenas = self.kernels[name], None
            program = ProgramInfo(name, info.inputs, info.outputs, (), True, symbols=info.symbols)
        about = packed, program, self._artifact.ranges, self._device
        if self._device_arenas is not None:
            of_program = name in self.programs
            records = of_program and depends_on_sizes_only(name, self.programs)
            return DeviceFunction(*about, self._device_arenas, self._artifact.keep_alive, not of_program, records)
        return Function(*about, arenas, self._strings if self._has_host_values(program) else None)

    def _has_host_values(self, program: ProgramInfo) -> bool:
        """Whether a program takes or returns values of the host, or contains calls that use them."""
        if any(is_host_dtype(spec.dtype) for spec in (*program.inputs, *program.outputs)):
            return True
        if program.name not in self.programs:
            return False
        return any(site.kernel.name.startswith(HOST_PREFIX) for site in call_sites(program.name, self.programs, self.kernels).values())

    def _refuse(self, *_: object) -> None:
        raise RuntimeError(f"the program is for target {self._artifact.target}: this machine lacks {', '.join(self._artifact.lacking)}")
