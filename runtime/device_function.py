"""A named function of a compiled program on a device whose memory is not the host's.

Tensors of the device go in without a copy, on the stream of the framework that they are from; arrays are copied there. What comes out are
tensors of the device, which speak DLPack, and are there once the stream has done what it was given; a call that takes arrays alone waits,
and gives arrays.
"""

import ctypes
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, TypeAlias

import numpy as np
import tvm_ffi

from relayc.runtime.artifact import SUB_BYTE, ProgramInfo, TensorSpec, numpy_dtype
from relayc.runtime.device import Device, DeviceError, LoadedProgram, Recording, device_kind, device_of
from relayc.runtime.device_arenas import DeviceArenas
from relayc.runtime.exceptions import reraise_original
from relayc.runtime.function import Function, fits
from relayc.runtime.shapes import CallShapes, Made
from relayc.runtime.stepwise_memory import DeviceMemory
from relayc.runtime.tensor import Tensor

Value: TypeAlias = np.ndarray | tvm_ffi.Tensor
"""An argument that was checked: an array of the host, or a tensor of the device."""

MOST_RECORDINGS = 32
"""Recordings per function; beyond this number, the least recently used one is dropped."""
CALLS_BEFORE_RECORDING = 2
"""Of a size, without a recording: the next call is recorded."""
MOST_SIZES_COUNTED = 8
"""Sizes whose calls a function counts: the most recent ones. A cache that grows with each call has more sizes before one comes again."""
MOST_COPIED_BYTES = 16 << 20
"""Of the inputs and outputs of a call that is recorded, as each replay copies them."""


class DeviceFunction(Function):
    """A compiled function on tensors of a device: a program such as `main`, or a kernel.

    Takes tensors that speak DLPack, on one device of the module's kind, and numpy arrays, which are copied there, of exactly the dtype and
    shape it was compiled for. Returns relayc tensors on that device; where no argument is a tensor of a device it runs on the module's, and
    returns numpy arrays. Calls return when their work is given to the device, unless they return arrays. Calls from several threads run
    at the same time; each is done in the order of its stream.

    Attributes:
      packed: the tvm-ffi function underneath. It takes one argument more: the address of the context of the call (LoadedProgram.context).
      records: whether the third call of a size on a stream is recorded, and later ones replay it (CUDA graphs), where inputs and outputs
        take MOST_COPIED_BYTES at most. Recordings keep memory of their own for inputs, outputs and intermediate tensors. Only functions
        that `can_record` do.
    """

    def __init__(
        self,
        packed: tvm_ffi.Function,
        program: ProgramInfo,
        ranges: Mapping[str, tuple[int, int]],
        device: Device,
        arenas: DeviceArenas,
        owner: object,
        is_kernel: bool = False,
        can_record: bool = False,
    ) -> None:
        """
        Args:
          owner: owner of the program's code (DeviceKind.load).
          is_kernel: whether it takes the values of its symbols after the tensors, and neither arena nor parameters.
          can_record: whether the work that it submits to the device depends on sizes alone.
        """
        super().__init__(packed, program, ranges, device)
        self._kind, self._memory, self._owner, self._is_kernel = device_kind(device.kind), arenas, owner, is_kernel
        self.can_record = self.records = can_record
        self._recordings: OrderedDict[tuple, _Recorded] = OrderedDict()
        self._calls: OrderedDict[tuple, int] = OrderedDict()
        """Of sizes that are not recorded, those of the last calls."""
        self._lock = threading.Lock()

    def __call__(self, *inputs: Any, out: Any = None, wrap: Callable[[Any], Any] | None = None, **named: Any) -> Any:
        """Runs the function.

        Args:
          inputs, named: as `Function.__call__` takes them.
          out: what to write the outputs to instead of new tensors, and to return: a tensor of the device or an array, or a sequence of as
            many as there are outputs. Each has the shape and dtype of its output, is contiguous and shares no memory with another argument.
          wrap: called on each new output as a relayc tensor, to return it as one of another framework: `wrap=torch.from_dlpack`.

        Raises:
          TypeError, ValueError: as `Function.__call__` does; tensors of several devices.
          DeviceError: there is no such device, or no code for it.
          RuntimeError: the device refuses something.
        """
        if named:
            inputs = self._in_order(inputs, named)
        index, stream, on_device = self._place(inputs)
        with self._kind.within(index, stream):
            call = self._begun(index, stream, inputs)
            targets = None if out is None else self._targets(index, out, call.shapes.outputs)
            results = self._results(call, targets, to_host=wrap is None and not on_device)
            self._kind.done(index, stream, inputs)
            if any(isinstance(value, np.ndarray) for value in (*call.given, *results)):
                self._kind.wait(index)
            if out is not None:
                for target, result in zip(targets or (), results, strict=True):
                    if isinstance(target, np.ndarray) and isinstance(result, np.ndarray):
                        target[...] = result.view(target.dtype)
                return out
            tensors = [r.view(self._dtype(i)) if isinstance(r, np.ndarray) else Tensor(r, stream) for i, r in enumerate(results)]
            found = tensors if wrap is None else list(map(wrap, tensors))
        return found[0] if len(found) == 1 else tuple(found)

    def _dtype(self, output: int) -> np.dtype:
        return numpy_dtype(self.outputs[output].dtype)

    def arena_bytes(self, inputs: Sequence[Any]) -> int:
        index, stream, _ = self._place(inputs)
        with self._kind.within(index, stream):
            return self._begun(index, stream, inputs).shapes.arena_bytes

    @contextmanager
    def on_device(self, inputs: Sequence[Any]) -> Iterator["DeviceCall"]:
        """The operands of a call for some inputs, all of them on the device; inside the context the thread's stream is the stream of the
        call."""
        index, stream, _ = self._place(inputs)
        with self._kind.within(index, stream):
            call = self._begun(index, stream, inputs)
            program = self._kind.program(self._owner, index)
            outputs, arguments = self._new_outputs(call), self._arguments(call)
            memory, arena = DeviceMemory(self._kind, index, program), self._kind.empty(index, (call.shapes.arena_bytes,), "uint8")
            yield DeviceCall(program, memory, arguments, outputs, arena, self._memory.params(index), call.shapes.sizes)

    def repeated(self, inputs: Sequence[Any], count: int) -> Callable[[], None]:
        """Records `count` calls on some inputs, and returns a function that submits all of them to the device at once: times of many calls
        then lack the host's part of each call. The calls share memory for their results, and run in order.

        Only a function that `can_record` is recorded as it runs.
        """
        index, stream, _ = self._place(inputs)
        with self.on_device(inputs) as call:
            tensors = (*call.inputs, *call.outputs, call.arena, call.params)

            def repeat(context: ctypes.Array) -> None:
                for _ in range(count):
                    self.packed(*tensors, ctypes.addressof(context))

            recording = call.program.record(repeat)

        def launch(_used: DeviceCall = call) -> None:  # the recording reads and writes its memory
            with self._kind.within(index, stream):
                recording.launch()

        return launch

    def set_records(self, wanted: bool) -> None:
        """Enables or disables recording of calls, where it is possible; disabling drops the recordings."""
        self.records = wanted and self.can_record
        if not wanted:
            with self._lock:
                self._recordings.clear()
                self._calls.clear()

    # ---- arguments

    def _place(self, inputs: Sequence[Any]) -> tuple[int, int, bool]:
        """The number of the device to run on, the stream for the work there, and whether an argument says where to run."""
        found: dict[int, int] = {}
        for i, value in enumerate(inputs):
            if hasattr(value, "__dlpack_device__") and not isinstance(value, np.ndarray):
                device = device_of(value)
                if device.kind == self.device.kind:
                    found.setdefault(device.index, i)
        if len(found) > 1:
            (first, i), (second, j) = sorted(found.items())[:2]
            where = f"{self.device.kind}:{first} (argument {i}) and {self.device.kind}:{second} (argument {j})"
            raise ValueError(f"{self.name}: expected tensors of one device, found {where}")
        index = next(iter(found), self.device.index)
        if not (device := Device(self.device.kind, index)).exists:
            raise DeviceError(f"device {device}: {self._kind.missing(index)}")
        return index, self._kind.stream_of(index, inputs), bool(found)

    def _begun(self, index: int, stream: int, inputs: Sequence[Any]) -> "_Call":
        """A call on a device, with its inputs as contiguous arrays of the host and tensors of the device; raises as `__call__` does."""
        if len(inputs) != len(self.inputs):
            names = ", ".join(spec.name for spec in self.inputs)
            raise TypeError(f"{self.name}: expected {len(self.inputs)} inputs ({names}), found {len(inputs)}")
        found: list[Value] = []
        for i, (value, (spec, dtype)) in enumerate(zip(inputs, self._wanted, strict=True)):
            if self._is_on_device(value):
                where = self._argument(i, spec)
                if isinstance(value, Tensor):
                    self._kind.hand_over(value.data, value.stream, stream)
                tensor = self._kind.taken(index, self._contiguous(value))
                self._check_tensor(tensor, where, spec)
                found.append(self._aligned(index, tensor, spec))
            else:
                found.append(self._check_input(i, value, spec, dtype))
        return _Call(index, stream, found, self.call_shapes(found))  # type: ignore[arg-type] # it asks for shapes only

    def _is_on_device(self, value: Any) -> bool:
        return (
            hasattr(value, "__dlpack_device__")
            and not isinstance(value, np.ndarray)
            and value.__dlpack_device__()[0] == self._kind.dlpack_type
        )

    def _contiguous(self, value: Any) -> Any:
        """The tensor; a strided tensor of another framework is copied, if the framework can do so."""
        if isinstance(value, Tensor):
            return value.data
        return value.contiguous() if hasattr(value, "contiguous") else value

    def _check_tensor(self, tensor: tvm_ffi.Tensor, where: str, spec: TensorSpec) -> None:
        found, dtype = tuple(tensor.shape), str(tensor.dtype)
        if dtype != ("uint8" if spec.dtype in SUB_BYTE else spec.dtype):
            raise TypeError(f"{where}, found {TensorSpec('', found, dtype)}")
        if not fits(found, spec):
            raise ValueError(f"{where}, found {TensorSpec('', found, dtype)}")
        if not tensor.is_contiguous():
            raise ValueError(f"{where}, found a tensor that is not contiguous")

    def _aligned(self, index: int, tensor: tvm_ffi.Tensor, spec: TensorSpec) -> tvm_ffi.Tensor:
        """The tensor, or a copy if it lacks the alignment that code of this kind relies on."""
        if tensor.data_ptr() % self._kind.alignment == 0:
            return tensor
        copy = self._kind.empty(index, tuple(tensor.shape), spec.dtype)
        self._kind.copy(tensor, copy)
        return copy

    def _targets(self, index: int, out: Any, made: Sequence[Made]) -> list[Value]:
        """The tensors and arrays to write the outputs to."""
        values = list(out) if isinstance(out, (list, tuple)) else [out]
        if not any(map(self._is_on_device, values)):
            return list(self._check_out(out, (), made))
        if self._late is not None or len(values) != len(self.outputs):
            self._check_out([np.empty(0)] * len(values), (), made)  # raises the error
        found: list[Value] = []
        for i, (value, spec, (shape, _, _)) in enumerate(zip(values, self.outputs, made, strict=True)):
            where = f"{self.name}: output {i} {spec.name!r}: expected a contiguous tensor {TensorSpec('', shape, spec.dtype)}"
            if not self._is_on_device(value) or value.__dlpack_device__()[1] != index:
                raise ValueError(f"{where} on {self.device.kind}:{index}, found {type(value).__name__} elsewhere")
            tensor = self._kind.taken(index, value.data if isinstance(value, Tensor) else value)
            self._check_tensor(tensor, where, TensorSpec(spec.name, shape, spec.dtype))
            if tensor.data_ptr() % self._kind.alignment:
                raise ValueError(f"{where} that begins at a multiple of {self._kind.alignment} bytes, found {tensor.data_ptr():#x}")
            found.append(tensor)
        return found

    # ---- the call

    def _results(self, call: "_Call", targets: Sequence[Value] | None, to_host: bool) -> list[Value]:
        """Runs the function; gives the outputs: tensors, or arrays where a target is an array or, without targets, with `to_host`.

        Arrays of the arguments must not change, and arrays of the results have no contents, until the stream is done.
        """
        index, stream, shapes = call.index, call.stream, call.shapes
        program = self._kind.program(self._owner, index)
        if self.records and self.can_record:
            recorded = self._recorded(call, program)
            if recorded is not None:
                with recorded.lock:
                    return self._replay(call, recorded, targets, to_host)
        arguments, outputs = self._arguments(call), self._new_outputs(call, targets)
        place = None if self._late is None else self._late.place()
        context = program.context(place)
        if self._is_kernel:
            self._run_packed(context, *arguments, *outputs, *shapes.sizes.values())
        else:
            arena = self._memory.acquire(index, stream, shapes.arena_bytes)
            try:
                self._run_packed(context, *arguments, *outputs, arena, self._memory.params(index))
            finally:
                self._memory.release(index, stream, arena)
        if self._late is not None and place is not None:
            outputs = self._late.among(outputs, place, shapes.sizes, partial(self._kind.at, index))
        arrays = [to_host] * len(outputs) if targets is None else [isinstance(target, np.ndarray) for target in targets]
        return [self._kind.fetch(output) if is_array else output for output, is_array in zip(outputs, arrays, strict=True)]

    def _run_packed(self, context: Any, *arguments: Any) -> None:
        try:
            self.packed(*arguments, ctypes.addressof(context))
        except BaseException as error:
            reraise_original(error)
            raise

    def _arguments(self, call: "_Call") -> list[tvm_ffi.Tensor]:
        """The inputs of a call on the device."""
        found = []
        for value in call.given:
            if not isinstance(value, tvm_ffi.Tensor):
                array, value = value, self._kind.empty(call.index, value.shape, value.dtype.name)
                self._kind.send(array, value)
            found.append(value)
        return found

    def _new_outputs(self, call: "_Call", targets: Sequence[Value] | None = None) -> list[tvm_ffi.Tensor]:
        """The outputs of a call whose sizes are known before it: new tensors where there is no tensor among the targets."""
        wanted: Sequence[Value | None] = targets or [None] * len(call.shapes.outputs)
        known = zip(call.shapes.outputs, self._shapes.outputs, wanted, strict=True)
        return [
            target if isinstance(target, tvm_ffi.Tensor) else self._kind.empty(call.index, shape, spec.dtype)
            for (shape, _, _), spec, target in known
        ]

    # ---- recordings

    def _recorded(self, call: "_Call", program: LoadedProgram) -> "_Recorded | None":
        """What replays calls of these sizes on a stream, recorded now if the sizes have come often enough; None to run the call itself."""
        index = call.index
        key = index, call.stream, tuple(call.shapes.sizes.values()), self._memory.version
        with self._lock:
            if key in self._recordings:
                self._recordings.move_to_end(key)
                return self._recordings[key]
            calls = self._calls.pop(key, 0)
            if calls < CALLS_BEFORE_RECORDING or self._copied_bytes(call) > MOST_COPIED_BYTES:
                self._calls[key] = calls + 1
                while len(self._calls) > MOST_SIZES_COUNTED:
                    self._calls.popitem(last=False)
                return None
        empty = partial(self._kind.empty, index)
        inputs = [empty(tuple(value.shape), spec.dtype) for value, spec in zip(call.given, self.inputs, strict=True)]
        outputs = self._new_outputs(call)
        arena, params = empty((call.shapes.arena_bytes,), "uint8"), self._memory.params(index)
        recording = program.record(lambda context: self._run_packed(context, *inputs, *outputs, arena, params))
        recorded = _Recorded(recording, inputs, outputs, (arena, params))
        with self._lock:
            found = self._recordings.setdefault(key, recorded)
            for old in [old for old in self._recordings if old[-1] != self._memory.version]:
                del self._recordings[old]
            while len(self._recordings) > MOST_RECORDINGS:
                self._recordings.popitem(last=False)
        return found

    def _copied_bytes(self, call: "_Call") -> int:
        """Bytes of the inputs and outputs of a call."""
        given = zip(call.given, self.inputs, strict=True)
        of_inputs = sum(prod(value.shape) * numpy_dtype(spec.dtype).itemsize for value, spec in given)
        return of_inputs + sum(num_bytes for _, _, num_bytes in call.shapes.outputs)

    def _replay(self, call: "_Call", recorded: "_Recorded", targets: Sequence[Value] | None, to_host: bool) -> list[Value]:
        """Runs a call by its recording; the rest is that of `_results`."""
        kind = self._kind
        for value, place in zip(call.given, recorded.inputs, strict=True):
            if isinstance(value, tvm_ffi.Tensor):
                kind.copy(value, place)
            else:
                kind.send(value, place)
        recorded.recording.launch()
        results: list[Value] = []
        for i, output in enumerate(recorded.outputs):
            target = None if targets is None else targets[i]
            if isinstance(target, np.ndarray) or (targets is None and to_host):
                results.append(kind.fetch(output))
                continue
            if target is None:
                target = kind.empty(call.index, tuple(output.shape), self._shapes.outputs[i].dtype)
            kind.copy(output, target)
            results.append(target)
        return results


@dataclass(slots=True)
class _Call:
    """A call that has begun.

    Attributes:
      index, stream: number of the device, and the stream of the work there.
      given: the inputs, checked.
      shapes: what follows from their shapes.
    """

    index: int
    stream: int
    given: list[Value]
    shapes: CallShapes


@dataclass(frozen=True)
class DeviceCall:
    """What a call on a device works on: the program there, tensors, and the values of the symbols."""

    program: LoadedProgram
    memory: DeviceMemory
    inputs: list[tvm_ffi.Tensor]
    outputs: list[tvm_ffi.Tensor]
    arena: tvm_ffi.Tensor
    params: tvm_ffi.Tensor
    sizes: Mapping[str, int]


class _Recorded:
    """A recorded call: the tensors that it reads and writes, and the memory that it needs.

    Attributes:
      lock: held while inputs are copied, the recording is launched and outputs are copied: others on the same stream wait.
    """

    def __init__(
        self, recording: Recording, inputs: list[tvm_ffi.Tensor], outputs: list[tvm_ffi.Tensor], others: tuple[tvm_ffi.Tensor, ...]
    ) -> None:
        self.recording, self.inputs, self.outputs, self._others = recording, inputs, outputs, others
        self.lock = threading.Lock()
