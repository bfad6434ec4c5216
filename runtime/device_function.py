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

from relayc.runtime.artifact import SUB_BYTE, TensorSpec, numpy_dtype
from relayc.runtime.device import Device, DeviceError, LoadedProgram, Recording, device_kind, device_of
from relayc.runtime.device_arenas import DeviceArenas
from relayc.runtime.exceptions import reraise_original
from relayc.runtime.function import Function, fits
from relayc.runtime.late import Late
from relayc.runtime.shapes import Made, Shapes
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
        name: str,
        packed: tvm_ffi.Function,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[TensorSpec],
        arenas: DeviceArenas,
        device: Device,
        owner: object,
        shapes: Shapes,
        late: Late | None = None,
        is_kernel: bool = False,
        can_record: bool = False,
    ) -> None:
        """
        Args:
          owner: owner of the program's code (DeviceKind.load).
          is_kernel: whether it takes the values of its symbols after the tensors, and neither arena nor parameters.
          can_record: whether the work that it submits to the device depends on sizes alone.
        """
        super().__init__(name, packed, inputs, outputs, None, device, shapes, late)
        self._kind, self._memory, self._owner, self._is_kernel = device_kind(device.kind), arenas, owner, is_kernel
        self._known = shapes.outputs
        """The outputs whose sizes are known before the call."""
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
        index, on_device = self._index(inputs)
        stream = self._kind.stream_of(index, inputs)
        with self._kind.within(index, stream):
            given = self._check_on(index, stream, inputs)
            made, sizes, arena_bytes = self.call_shapes(given)  # type: ignore[arg-type] # it asks for shapes only
            targets = None if out is None else self._targets(index, out, made)
            to_host = wrap is None and not on_device
            results = self._results(index, stream, given, targets, made, sizes, arena_bytes, to_host)
            self._kind.done(index, stream, inputs)
            if any(isinstance(value, np.ndarray) for value in (*given, *results)):
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
        index, _ = self._index(inputs)
        stream = self._kind.stream_of(index, inputs)
        with self._kind.within(index, stream):
            return self.call_shapes(self._check_on(index, stream, inputs))[2]  # type: ignore[arg-type] # it asks for shapes only

    @contextmanager
    def on_device(self, inputs: Sequence[Any]) -> Iterator["DeviceCall"]:
        """The operands of a call for some inputs, all of them on the device; inside the context the thread's stream is the stream of the
        call."""
        index, _ = self._index(inputs)
        stream = self._kind.stream_of(index, inputs)
        with self._kind.within(index, stream):
            given = self._check_on(index, stream, inputs)
            made, sizes, arena_bytes = self.call_shapes(given)  # type: ignore[arg-type] # it asks for shapes only
            program, empty = self._kind.program(self._owner, index), partial(self._kind.empty, index)
            outputs = [empty(shape, self._known[i].dtype) for i, (shape, _, _) in enumerate(made)]
            arguments = [self._kind_tensor(index, value) for value in given]
            memory = DeviceMemory(self._kind, index, program)
            yield DeviceCall(program, memory, arguments, outputs, empty((arena_bytes,), "uint8"), self._memory.params(index), sizes)

    def repeated(self, inputs: Sequence[Any], count: int) -> Callable[[], None]:
        """Records `count` calls on some inputs, and returns a function that submits all of them to the device at once: times of many calls
        then lack the host's part of each call. The calls share memory for their results, and run in order.

        Only a function that `can_record` is recorded as it runs.
        """
        index, _ = self._index(inputs)
        stream = self._kind.stream_of(index, inputs)
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

    def _index(self, inputs: Sequence[Any]) -> tuple[int, bool]:
        """The number of the device to run on, and whether an argument says so."""
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
        return index, bool(found)

    def _check_on(self, index: int, stream: int, inputs: Sequence[Any]) -> list[Value]:
        """The inputs as contiguous arrays of the host and tensors of the device; raises as `__call__` does."""
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
        return found

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

    def _results(
        self,
        index: int,
        stream: int,
        given: Sequence[Value],
        targets: Sequence[Value] | None,
        made: Sequence[Made],
        sizes: Mapping[str, int],
        arena_bytes: int,
        to_host: bool,
    ) -> list[Value]:
        """Runs the function; gives the outputs: tensors, or arrays where a target is an array or, without targets, with `to_host`.

        Arrays of the arguments must not change, and arrays of the results have no contents, until the stream is done.
        """
        program = self._kind.program(self._owner, index)
        if self.records and self.can_record:
            recorded = self._recorded(index, stream, program, given, made, sizes, arena_bytes)
            if recorded is not None:
                with recorded.lock:
                    return self._replay(index, recorded, given, targets, to_host)
        arguments = [self._kind_tensor(index, value) for value in given]
        into = [None] * len(made) if targets is None else [t if isinstance(t, tvm_ffi.Tensor) else None for t in targets]
        outputs = [
            self._kind.empty(index, shape, self._known[i].dtype) if target is None else target
            for i, ((shape, _, _), target) in enumerate(zip(made, into, strict=True))
        ]
        place = None if self._late is None else self._late.place()
        context = program.context(place)
        if self._is_kernel:
            self._run_packed(context, *arguments, *outputs, *sizes.values())
        else:
            arena = self._memory.acquire(index, stream, arena_bytes)
            try:
                self._run_packed(context, *arguments, *outputs, arena, self._memory.params(index))
            finally:
                self._memory.release(index, stream, arena)
        if self._late is not None and place is not None:
            outputs = self._late.among(outputs, place, sizes, partial(self._kind.at, index))
        arrays = [to_host] * len(outputs) if targets is None else [isinstance(target, np.ndarray) for target in targets]
        return [self._kind.fetch(output) if is_array else output for output, is_array in zip(outputs, arrays, strict=True)]

    def _run_packed(self, context: Any, *arguments: Any) -> None:
        try:
            self.packed(*arguments, ctypes.addressof(context))
        except BaseException as error:
            reraise_original(error)
            raise

    def _kind_tensor(self, index: int, value: Value) -> tvm_ffi.Tensor:
        """A checked argument on the device."""
        if isinstance(value, tvm_ffi.Tensor):
            return value
        made = self._kind.empty(index, value.shape, value.dtype.name)
        self._kind.send(value, made)
        return made

    # ---- recordings

    def _recorded(
        self,
        index: int,
        stream: int,
        program: LoadedProgram,
        given: Sequence[Value],
        made: Sequence[Made],
        sizes: Mapping[str, int],
        arena_bytes: int,
    ) -> "_Recorded | None":
        """What replays calls of these sizes on a stream, recorded now if the sizes have come often enough; None to run the call itself."""
        key = index, stream, tuple(sizes.values()), self._memory.version
        with self._lock:
            if key in self._recordings:
                self._recordings.move_to_end(key)
                return self._recordings[key]
            calls = self._calls.pop(key, 0)
            if calls < CALLS_BEFORE_RECORDING or self._copied_bytes(given, made) > MOST_COPIED_BYTES:
                self._calls[key] = calls + 1
                while len(self._calls) > MOST_SIZES_COUNTED:
                    self._calls.popitem(last=False)
                return None
        empty = partial(self._kind.empty, index)
        inputs = [empty(tuple(value.shape), spec.dtype) for value, spec in zip(given, self.inputs, strict=True)]
        outputs = [empty(shape, self._known[i].dtype) for i, (shape, _, _) in enumerate(made)]
        arena, params = empty((arena_bytes,), "uint8"), self._memory.params(index)
        recording = program.record(lambda context: self._run_packed(context, *inputs, *outputs, arena, params))
        recorded = _Recorded(recording, inputs, outputs, (arena, params))
        with self._lock:
            found = self._recordings.setdefault(key, recorded)
            for old in [old for old in self._recordings if old[-1] != self._memory.version]:
                del self._recordings[old]
            while len(self._recordings) > MOST_RECORDINGS:
                self._recordings.popitem(last=False)
        return found

    def _copied_bytes(self, given: Sequence[Value], made: Sequence[Made]) -> int:
        """Bytes of the inputs and outputs of a call."""
        of_inputs = sum(prod(value.shape) * numpy_dtype(spec.dtype).itemsize for value, spec in zip(given, self.inputs, strict=True))
        return of_inputs + sum(num_bytes for _, _, num_bytes in made)

    def _replay(
        self, index: int, recorded: "_Recorded", given: Sequence[Value], targets: Sequence[Value] | None, to_host: bool
    ) -> list[Value]:
        """Runs a call by its recording; the rest is that of `_results`."""
        kind = self._kind
        for value, place in zip(given, recorded.inputs, strict=True):
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
                target = kind.empty(index, tuple(output.shape), self._known[i].dtype)
            kind.copy(output, target)
            results.append(target)
        return results


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
