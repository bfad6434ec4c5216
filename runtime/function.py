"""A named function of a compiled program on arrays: it checks its arguments and creates its results."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any

import numpy as np
import tvm_ffi

from relayc.nearest import nearest
from relayc.runtime.arenas import ArenaPool
from relayc.runtime.artifact import ProgramInfo, TensorSpec, aligned_array, is_host_dtype, is_numpys, numpy_dtype
from relayc.runtime.device import Device
from relayc.runtime.exceptions import reraise_original
from relayc.runtime.host import HostValues, ProgramStrings, current
from relayc.runtime.late import Late
from relayc.runtime.result_memory import ResultMemory
from relayc.runtime.shapes import CallShapes, Made, Shape, Shapes
from relayc.runtime.tensor import as_array, is_direct_torch, to_argument, to_tensor
from relayc.runtime.threads import Team
from relayc.symbolic import Dim

_PLAIN = 0x0101
"""numpy's flags of an array that is contiguous in row-major order and aligned to its dtype (NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED)."""

_DIRECT = _PLAIN | 0x0400
"""The same, and writable (NPY_ARRAY_WRITEABLE): tvm-ffi takes no other array as it is."""

_SMALL_BYTES = 1 << 12
"""Bytes of the tensors of a program of which no kernel is worth a second thread."""

_NO_HOST_VALUES: AbstractContextManager[None] = nullcontext()


class Function:
    """A compiled function on arrays: a program such as `main`, or a kernel.

    Takes numpy arrays or tensors that speak DLPack, in the host's memory, of exactly the dtype and shape it was compiled for; strided ones
    are copied first. Returns new numpy arrays (64-byte aligned): one bare, several as a tuple. Calls from several threads run at the same
    time; the GIL is released. Strings come as arrays of str or bytes (objects, U, S or StringDType) or nested lists of them, and are
    returned as arrays of str objects.

    Attributes:
      name: of the function in the module.
      inputs, outputs: specs of the tensors it takes and gives.
      device: where it runs.
      packed: the tvm-ffi function underneath. It writes to outputs that are passed after the inputs; that of a program takes two more
        arguments, the arena and the parameters. Called directly, it runs on as many threads as OpenMP says for the calling thread.
      team: the threads of its calls.
    """

    def __init__(
        self,
        packed: tvm_ffi.Function,
        program: ProgramInfo,
        ranges: Mapping[str, tuple[int, int]],
        device: Device,
        arenas: ArenaPool | None = None,
        strings: ProgramStrings | None = None,
    ) -> None:
        """
        Args:
          program: what it takes and gives; a kernel is a program without steps.
          ranges: minimum and maximum of symbols.
          strings: of a program with values of the host, the program's own strings; None for one without such values.
        """
        self.name, self.inputs, self.outputs = program.name, program.inputs, program.outputs
        self.device = device
        self.packed = packed
        self.team = Team()
        self._arenas, self._shapes, self._strings = arenas, Shapes(program, ranges), strings
        self._late = Late(program) if program.late else None
        self._wanted = [(spec, numpy_dtype(spec.dtype)) for spec in self.inputs]
        # None, which is no array's dtype, for an argument of host values: `check` converts it.
        self._direct_dtypes = [None if strings is not None and is_host_dtype(spec.dtype) else dtype for spec, dtype in self._wanted]
        self._result_memory = [ResultMemory() for _ in self._shapes.outputs]
        self._all_numpys = all(is_numpys(numpy_dtype(spec.dtype)) for spec in (*self.inputs, *self._shapes.outputs))

    def __call__(self, *inputs: Any, out: Any = None, wrap: Callable[[tvm_ffi.Tensor], Any] | None = None, **named: Any) -> Any:
        """Runs the function.

        Args:
          inputs: in order, the first ones or all.
          named: the others by name; one that is called `out` or `wrap` has to come in order.
          out: what to write the outputs to instead of new arrays, and to return: an array or tensor, or a sequence of as many as there
            are outputs. Each has the shape and dtype of its output, is contiguous and shares no memory with another argument.
          wrap: called on each new output as a tvm-ffi tensor, to return it as a tensor of another framework: `wrap=torch.from_dlpack`.

        Raises:
          TypeError: wrong number or names of inputs, something that is not a tensor, or a wrong dtype.
          ValueError: wrong rank, shape or device; `out` or `wrap` where an output is no tensor of numbers. Both name the argument, what was
            expected and what was found.
          RecursionError: more calls of a program are under way in one another than the program allows.

        What a Python function raises that the program calls arrives as it is (see `register_func`).
        """
        if named:
            inputs = self._in_order(inputs, named)
        if self._strings is None:
            results = self._run(inputs, out)
        else:
            if out is not None or wrap is not None:
                self._check_tensors_only("out" if out is not None else "wrap")
            with HostValues(self._strings) as host:
                results = [host.given(array, spec) for array, spec in zip(self._run(inputs, out), self.outputs, strict=True)]
        if out is not None:
            return out
        if wrap is not None:
            results = [wrap(to_tensor(array)) for array in results]
        return results[0] if len(results) == 1 else tuple(results)

    def _in_order(self, inputs: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """All inputs of a call in order. Raises TypeError for names that are unknown, missing or given in order too."""
        names = [spec.name for spec in self.inputs]
        unknown = [name for name in named if name not in names]
        double = [name for name in names[: len(inputs)] if name in named]
        missing = [name for name in names[len(inputs) :] if name not in named]
        if unknown:
            raise TypeError(f"{self.name}: expected inputs out of {', '.join(names)}, found {unknown[0]!r}{nearest(unknown[0], names)}")
        if double:
            raise TypeError(f"{self.name}: expected input {double[0]!r} once, found it in order and by name")
        if missing:
            raise TypeError(f"{self.name}: expected {len(names)} inputs ({', '.join(names)}), found none for {', '.join(missing)}")
        return (*inputs, *(named[name] for name in names[len(inputs) :]))

    def _check_tensors_only(self, what: str) -> None:
        host = next((spec for spec in self.outputs if is_host_dtype(spec.dtype)), None)
        if host is not None:
            raise ValueError(f"{self.name}: {what}: expected outputs that are tensors of numbers, found {host.name!r}: {host}")

    @property
    def has_host_values(self) -> bool:
        """Whether a call has values of the host."""
        return self._strings is not None

    def host_values(self) -> AbstractContextManager[HostValues | None]:
        """The context of a call's host values, in which its inputs are checked and its kernels run; None without host values."""
        return _NO_HOST_VALUES if self._strings is None else HostValues(self._strings)

    def _run(self, inputs: Sequence[Any], out: Any) -> list[Any]:
        """Runs the function; returns the arrays that it wrote."""
        arrays, found, is_direct = self._checked(inputs, out is None)
        made = found.outputs
        results = list(map(ResultMemory.array, self._result_memory, made)) if out is None else self._check_out(out, arrays, made)
        read: Iterable[Any] = arrays
        written: Iterable[Any] = results
        if not is_direct:
            read, written = map(to_argument, arrays), map(to_argument, results)
        place = [] if self._late is None else [self._late.place()]
        self.execute(read, written, found, place)
        return results if self._late is None else self._late.results(results, place[0], found.sizes)

    def execute(self, read: Iterable[Any], written: Iterable[Any], shapes: CallShapes, place: Sequence[Any] = ()) -> None:
        """Runs the function on contiguous arguments that tvm-ffi accepts; only the packed function checks the arguments.

        Args:
          read, written: inputs and outputs, of the host.
          place: where the shapes of late outputs are written, if there are any.
        """
        arenas, team = self._arenas, self.team
        arena = None if arenas is None else arenas.acquire(shapes.arena_bytes) if shapes.arena_bytes else arenas.empty
        team.enter()
        try:
            if arenas is None or arena is None:
                self.packed(*read, *written, *shapes.sizes.values())
            else:
                self.packed(*read, *written, arena[0], arenas.params, *place)
        except BaseException as error:
            reraise_original(error)
            raise
        finally:
            team.leave()
            if arenas is not None and arena is not None and shapes.arena_bytes:
                arenas.release(arena)

    def result(self, i: int, made: Made) -> np.ndarray:
        """An uninitialised array for output i; its memory is reused when the array is no longer referenced."""
        return self._result_memory[i].array(made)

    @cached_property
    def fixed_shapes(self) -> CallShapes | None:
        """The shapes of every call; None if they differ from call to call, or if a call does more than `execute`."""
        if type(self) is not Function or self._strings is not None or self._late is not None or self.device.kind != "cpu":
            return None
        shapes = tuple(spec.shape for spec in self.inputs)
        if any(isinstance(d, Dim) for shape in shapes for d in shape):
            return None
        return self._shapes.of(shapes)  # type: ignore[arg-type] # no dimension is an expression

    @cached_property
    def small_calls(self) -> "SmallCalls | None":
        """What runs the calls of a program whose shapes are fixed and whose tensors, with the arena, take little memory; otherwise None."""
        shapes, arenas = self.fixed_shapes, self._arenas
        if shapes is None or arenas is None:
            return None
        tensors = sum(int(spec.num_bytes) for spec in (*self.inputs, *self.outputs))
        total = tensors + shapes.arena_bytes + arenas.params.numel()
        return SmallCalls(self.packed, arenas, shapes.arena_bytes) if total <= _SMALL_BYTES else None

    def _checked(self, inputs: Sequence[Any], allows_torch: bool) -> tuple[Sequence[Any], CallShapes, bool]:
        """The inputs as contiguous arrays (or as they are, tensors of torch), what follows from their shapes, and whether tvm-ffi takes all
        arrays of the call as they are."""
        if len(inputs) == len(self.inputs):
            shapes = []
            for value, dtype in zip(inputs, self._direct_dtypes):  # noqa: B905 # of equal lengths; `strict` takes as long as a check
                if type(value) is np.ndarray:
                    if value.dtype is not dtype or value.flags.num & _DIRECT != _DIRECT:
                        break
                elif not (allows_torch and self._all_numpys and is_direct_torch(value, dtype)):
                    break
                shapes.append(value.shape)
            # Known shapes were checked when they were found. After a break, `shapes` is too short to be known.
            found = self._shapes.known.get(tuple(shapes))
            if found is not None:
                return inputs, found, self._all_numpys
        arrays = self.check(inputs)
        return arrays, self.call_shapes(arrays), False

    def call_shapes(self, arrays: Sequence[np.ndarray]) -> CallShapes:
        """What follows from the shapes of checked inputs.

        Raises ValueError for shapes that do not fit together, are out of bounds, or need more memory than there can be.
        """
        return self._shapes.of(tuple([array.shape for array in arrays]))

    def arena_bytes(self, inputs: Sequence[Any]) -> int:
        """Memory for intermediate tensors that a call takes; raises as `__call__` does."""
        return self.call_shapes(self.check(inputs)).arena_bytes

    def check(self, inputs: Sequence[Any]) -> list[np.ndarray]:
        """The inputs as contiguous numpy arrays, copied if necessary; raises the errors of `__call__`."""
        if len(inputs) != len(self.inputs):
            names = ", ".join(spec.name for spec in self.inputs)
            raise TypeError(f"{self.name}: expected {len(self.inputs)} inputs ({names}), found {len(inputs)}")
        return [self._check_input(i, value, *wanted) for i, (value, wanted) in enumerate(zip(inputs, self._wanted, strict=True))]

    def _check_input(self, i: int, value: Any, spec: TensorSpec, dtype: np.dtype) -> np.ndarray:
        if self._strings is not None and is_host_dtype(spec.dtype):
            value = self._taken(value, i, spec)
        elif type(value) is not np.ndarray:
            value = self._as_array(value, self._argument(i, spec))
        if value.dtype != dtype:
            raise TypeError(f"{self._argument(i, spec)}, found {_describe(value)}")
        if not fits(value.shape, spec):
            raise ValueError(f"{self._argument(i, spec)}, found {TensorSpec('', value.shape, spec.dtype)}")
        if value.flags.num & _PLAIN != _PLAIN:
            # Not np.ascontiguousarray: it makes a scalar one-dimensional, and keeps unaligned memory.
            copy = aligned_array(value.shape, dtype, value.nbytes)
            copy[...] = value
            return copy
        return value

    def _taken(self, value: Any, i: int, spec: TensorSpec) -> np.ndarray:
        """The numbers of an argument of the host's values."""
        try:
            return current().taken(value, spec)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{self._argument(i, spec)}, {error}") from error

    def _check_out(self, out: Any, inputs: Sequence[np.ndarray], made: Sequence[Made]) -> list[np.ndarray]:
        if self._late is not None:
            names = ", ".join(self.outputs[i].name for i in self._late.positions)
            raise ValueError(f"{self.name}: out: expected outputs whose sizes are known before the call, found {names}")
        values = list(out) if isinstance(out, (list, tuple)) else [out]
        if len(values) != len(self.outputs):
            raise TypeError(f"{self.name}: expected {len(self.outputs)} arrays in out, found {len(values)}")
        arrays: list[np.ndarray] = []
        for i, (value, spec, (shape, dtype, _)) in enumerate(zip(values, self.outputs, made, strict=True)):
            array = value if type(value) is np.ndarray else self._as_array(value, self._output(i, spec, shape))
            if array.dtype != dtype:
                raise TypeError(f"{self._output(i, spec, shape)}, found {_describe(array)}")
            if array.shape != shape or array.flags.num & _DIRECT != _DIRECT:
                found = f"{_describe(array)} with strides {array.strides}, writable {array.flags.writeable}, aligned {array.flags.aligned}"
                raise ValueError(f"{self._output(i, spec, shape)}, found {found}")
            for other in (*inputs, *arrays):
                if np.may_share_memory(array, other):
                    where = self._output(i, spec, shape)
                    raise ValueError(f"{where} with memory of its own, found one that overlaps another argument")
            arrays.append(array)
        return arrays

    def _output(self, i: int, spec: TensorSpec, shape: Shape) -> str:
        return f"{self.name}: output {i} {spec.name!r}: expected a writable contiguous array {TensorSpec('', shape, spec.dtype)}"

    def _as_array(self, value: Any, where: str) -> np.ndarray:
        try:
            return as_array(value)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{where} on the {self.device.kind}, {error}") from error

    def _argument(self, i: int, spec: TensorSpec) -> str:
        return f"{self.name}: argument {i} {spec.name!r}: expected {spec}"

    def __repr__(self) -> str:
        takes = ", ".join(f"{spec.name}: {spec}" for spec in self.inputs)
        gives = ", ".join(str(spec) for spec in self.outputs)
        return f"<relayc function {self.name}({takes}) -> {gives}>"


class SmallCalls:
    """Calls of a program with small tensors, without the costs of `Function.execute`: a call joins no team, and its arena is kept for good.

    A kernel that has a parallel loop nevertheless runs on as many threads as the calling thread's previous call.
    """

    def __init__(self, packed: tvm_ffi.Function, arenas: ArenaPool, arena_bytes: int) -> None:
        self._packed, self._arenas, self._arena_bytes = packed, arenas, arena_bytes
        # Of calls that are over; an operation on a list is atomic.
        self._free: list[tvm_ffi.Tensor] = []

    def execute(self, read: Iterable[Any], written: Iterable[Any]) -> None:
        """As `Function.execute`."""
        try:
            arena = self._free.pop()
        except IndexError:
            arena = self._arenas.acquire(self._arena_bytes)[0]
        try:
            self._packed(*read, *written, arena, self._arenas.params)
        except BaseException as error:
            reraise_original(error)
            raise
        finally:
            self._free.append(arena)


def fits(shape: tuple[int, ...], spec: TensorSpec) -> bool:
    """Whether a shape has the rank and the fixed dimensions that a spec says."""
    if shape == spec.shape:
        return True
    return len(shape) == len(spec.shape) and all(isinstance(d, Dim) or d == n for n, d in zip(shape, spec.shape, strict=True))


def _describe(value: np.ndarray) -> str:
    return str(TensorSpec("", value.shape, value.dtype.name if value.dtype.isnative else value.dtype.str))


def in_order(inputs: Mapping[str, Any] | Sequence[Any], specs: Sequence[TensorSpec]) -> Sequence[Any]:
    """Inputs in the order of a function, also if they are given by name."""
    if not isinstance(inputs, (dict, Mapping)):  # a dict is recognised sooner than a Mapping
        return inputs
    found = [inputs[spec.name] for spec in specs if spec.name in inputs]
    if not len(found) == len(specs) == len(inputs):
        names = [spec.name for spec in specs]
        missing = [name for name in names if name not in inputs]
        unknown = [name for name in inputs if name not in names]
        raise ValueError(f"expected the inputs {', '.join(names)}; missing {missing}, unknown {unknown}")
    return found
