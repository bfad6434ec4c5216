"""A compiled program that can be called: named functions on arrays, with memory, parameters and profiling."""

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from relayc.nearest import nearest
from relayc.runtime.artifact import Artifact, ProgramInfo
from relayc.runtime.device import Device, device_kind
from relayc.runtime.device_function import DeviceFunction
from relayc.runtime.export import ExportedProgram, ExportRequest
from relayc.runtime.function import in_order
from relayc.runtime.imports import Imports, Library
from relayc.runtime.params import load_param_dict_from_file, parameter_arrays, save_param_dict_to_file, with_parameters
from relayc.runtime.profile import CallSite, Peak, Profile
from relayc.runtime.program_code import ProgramCode
from relayc.runtime.signature import INITIAL_STATE, Signature, call
from relayc.runtime.stepwise import call_sites
from relayc.runtime.threads import startable_threads
from relayc.runtime.timing import BenchmarkResult, evaluator

if TYPE_CHECKING:
    from relayc.runtime.graph import Graph
    from relayc.runtime.native import NativeCode
    from relayc.runtime.native_info import Constructor


class _Texts(dict[str, str]):
    """The IR by stage; a stage that was not kept is an error that says how to keep it."""

    def __missing__(self, stage: str) -> str:
        raise KeyError(f"no IR of stage {stage!r} was kept: compile with keep_ir=True (kept: {', '.join(self) or 'none'})")


class Module:
    """A compiled module: `module["main"](*inputs)`, or `module.run({"x": ...})` by name.

    Its functions are its public programs and, under their names in the IR, its kernels. Methods about one function use `main` by default,
    or the first public program if there is no `main`.

    Attributes:
      inputs, outputs: names, shapes and dtypes of the arguments and results of `main`, in order.
      kernels: the contents of each kernel.
      step_kernels: the kernels that `main` and its callees may run: one entry per call in the text, in order. A kernel called in two places
        has two entries, a kernel called in a loop one.
      ir: text of the stages that were kept ("relay", "te", "tir", "llvm").
      stats: seconds spent per compilation stage.
      target: text of the compilation target, with all attributes.
      device: where its functions run.
      precision: in which products and convolutions of f32 are computed: "f32" or "bf16" (rounded operands, sums in f32).
      ranges: minimum and maximum of the symbols in these shapes, where known.
      recompile: used by `specialize`: compiles the module for given sizes, from a given model or, if it is None, from the original. None
        without a compiler.
      describe_schedule: used by `schedule`; None without a compiler.
      exporter: called by `export_library` with the program; None without a compiler.
      signature: how the module is called, if it was imported with nested arguments (`relayc.from_pytorch`); otherwise None.
      source: returns the source of the module: "name", "sha256" of the file, "files", the SHA-256 of the external data by name.
      lacking: features of the target that this machine lacks. If there are any, calling a function raises RuntimeError; the program can
        still be inspected, and cached for machines that have them.
    """

    def __init__(self, artifact: Artifact, measure_peak: Callable[[int], Peak] | None = None) -> None:
        """
        Args:
          measure_peak: gives what the machine can do with a number of threads; profiles call it when they are asked for shares of that.

        Raises:
          DeviceError: the program is for a kind of device that nobody registered.
          RuntimeError: the system refuses the process what the program needs.
        """
        self.recompile: Callable[[Sequence[Mapping[str, int]], Any], Module] | None = None
        self.describe_schedule: Callable[[str, Sequence[Mapping[str, int]], Any], str] | None = None
        self.exporter: Callable[[ExportedProgram, ExportRequest], list[Path]] | None = None
        self.source: Callable[[], Mapping[str, Any]] | None = None
        self._imports = Imports()
        self._artifact = artifact
        self._measure_peak = measure_peak
        self._default = artifact.programs[0].name
        self.signature = Signature.read(artifact.signature) if artifact.signature else None
        self._state: dict[str, Any] | None = None
        self.inputs = artifact.programs[0].inputs
        self.outputs = artifact.programs[0].outputs
        self.kernels = artifact.kernels
        self.ir: Mapping[str, str] = _Texts(artifact.ir)
        self.stats = dict(artifact.stats)
        self.target = artifact.target
        self.device = Device(artifact.device)
        self.precision = artifact.precision
        self.ranges = artifact.ranges
        self.lacking = artifact.lacking
        self._code = ProgramCode(artifact)
        self._functions = self._code.functions
        known = self._code.kernels
        self.step_kernels = tuple(site.kernel for site in self.call_sites() if known.get(site.kernel.name) is site.kernel)

    def native(self, constructors: Mapping[str, Sequence[Any]] | None = None, **conversions: Any) -> "NativeCode":
        """The functions of a program with values that are no tensors, linked to its kernels; those of before are no longer to be called.

        Args:
          constructors, conversions: as of NativeCode.
        """
        return self._code.native(constructors, **conversions)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls `main` with the arguments of the model, nested as in Python, and returns the results of the model (see runtime.signature).

        Results are torch tensors if an argument is one, otherwise numpy arrays. A module without a signature has the arguments and results
        of `module["main"]`. Writes of the model to arguments and to its state take effect.

        Raises:
          TypeError: arguments of another structure, or a value that is not a tensor of the expected dtype.
          ValueError: a wrong shape or device, or a missing tensor of the state.
        """
        function = self._functions[self._default]
        if self.signature is None:
            return function(*args, **kwargs)
        return call(self.signature, function, not isinstance(function, DeviceFunction), self.state, args, kwargs)

    @property
    def state(self) -> dict[str, Any]:
        """The tensors that calls of the module read besides their arguments, and may write: buffers that the model changes, and weights
        that are inputs. To be set by name: a torch tensor is read, and written, where it is."""
        if self._state is None:
            self._state = {}
            if INITIAL_STATE in self._functions and self.signature is not None:
                self._state.update(self.run({}, INITIAL_STATE))
        return self._state

    def assembly(self, function: str | None = None) -> str:
        """The machine code as text, in AT&T syntax.

        Args:
          function: a program or a kernel, with the bodies of its parallel loops; by default everything.

        Raises:
          KeyError: there is no such function.
          ValueError: there are no object files of the program here, or nothing shows those of its kind of device.
          ModuleNotFoundError: the disassembler is not installed.
        """
        if function is not None and function not in self._code.programs:
            self.get_function(function)
        if self._artifact.code is None:
            raise ValueError("assembly: expected a program made of object files, found one of code that is in memory only")
        return device_kind(self.device.kind).disassemble(self._artifact.code, function)

    def schedule(self, kernel: str, model: Any = None) -> str:
        """How a kernel is scheduled, as text. The module is compiled again for it, up to its loops.

        The first line names the strategy and its numbers. Of a kernel with a schedule of primitives the blocks and loops follow in
        TVMScript's form, and the trace, which `relayc.compile(..., schedules={kernel: trace})` takes, changed or not; of any other kernel
        the loops that the strategy made, as MLIR.

        Args:
          model: what the module was compiled from, where that was no file, or the file is not as it was.

        Raises:
          KeyError: there is no such kernel.
          ValueError, TypeError: the model is not at hand, or the module was not compiled here.
        """
        names = [k.name for k in self.kernels]
        if kernel not in names:
            raise KeyError(f"schedule: expected a kernel of the module, found {kernel!r}{nearest(kernel, names)}")
        if self.describe_schedule is None:
            raise ValueError("schedule: expected a module that relayc.compile gave, found one without a compiler")
        return self.describe_schedule(kernel, self.specialized, model)

    def report(self, path: str | os.PathLike[str], inputs: Mapping[str, Any] | Sequence[Any] | None = None, model: Any = None) -> None:
        """Writes a page about how the module is compiled and how it runs (docs/report.md). The module is compiled again for it.

        Args:
          path: of the page, HTML.
          inputs: of the call of `main` that is timed, by name or in order; by default random ones at typical sizes.
          model: what the module was compiled from, where that was no file, or the file is not as it was.

        Raises:
          ValueError, TypeError: the model is not at hand, or the module was not compiled here; as a call of `main` does.
          OSError: the page cannot be written.
          ModuleNotFoundError: the compiler, or a package of `relayc[report]`, is not installed.
        """
        # By name, as the runtime imports nothing of the compiler: it is there without one.
        importlib.import_module("relayc").report(self, path, inputs=inputs, model=model)

    @property
    def device_code(self) -> bytes:
        """The kernels as code of a device, as its kind keeps it; b"" for a program that runs on the host."""
        return b"" if self._artifact.code is None else self._artifact.code.images

    @property
    def num_threads(self) -> int | None:
        """The number of threads of a call that runs alone; None (default): the setting of the process (runtime.num_threads).

        Setting it raises TypeError or ValueError for an invalid number of threads.
        """
        return self._functions[self._default].team.count

    @num_threads.setter
    def num_threads(self, count: int | None) -> None:
        for function in self._functions.values():
            function.team.count = count if count is None else startable_threads(count)

    @property
    def records(self) -> bool:
        """Whether calls on a device are recorded at the first call of a size and replayed after (CUDA graphs): by default where what a
        program does depends on sizes alone. Setting it to False turns that off, and lets go of what was recorded."""
        return any(isinstance(f, DeviceFunction) and f.records for f in self._functions.values())

    @records.setter
    def records(self, wanted: bool) -> None:
        for function in self._functions.values():
            if isinstance(function, DeviceFunction):
                function.set_records(wanted)

    @property
    def specialized(self) -> tuple[dict[str, int], ...]:
        """The sizes that `main` is compiled for by itself, in the order in which it compares its symbols with them."""
        return tuple(dict(program.sizes) for program in self._code.programs.values() if program.sizes)

    def specialize(self, sizes: Mapping[str, int], model: Any = None) -> None:
        """Compiles `main` for hot sizes by themselves, beside those that it is compiled for already.

        The whole module is compiled again, as it was but for one size more: that takes as long as the first time and what the size adds,
        unless the program is in the cache on disk. Calls go on meanwhile. Then the module has the new code; functions that were taken
        from it before stay as they are, and keep the old code and its parameters in memory for as long as they live.

        Args:
          sizes: by symbol, {"batch": 4}: symbols that are not named stay open.
          model: what the module was compiled from, where that was no file, or the file is not as it was.

        Raises:
          ValueError, TypeError: the model is not at hand, or is another one; what `relayc.compile` raises for the sizes.
        """
        if self.recompile is None:
            raise ValueError("specialize: expected a module that relayc.compile gave, found one without a compiler")
        made = self.recompile([*self.specialized, sizes], model)
        if (made.inputs, made.outputs) != (self.inputs, self.outputs):
            raise ValueError(f"specialize: model: expected what gives {self!r}, found what gives {made!r}")
        made.num_threads, made._imports, made._state = self.num_threads, self._imports, self._state
        self.__dict__.update(made.__dict__)

    def export_library(
        self, path: str | os.PathLike[str], *, params: str = "embedded", prefix: str = "", bundle: bool = True
    ) -> list[Path]:
        """Writes the module, and those that it imports, as a library for machines on which relayc is not installed (docs/export.md).

        Args:
          path: of a shared library (model.so), which `relayc.load_module` and `tvm_ffi.load_module` load; or of an object (model.o), beside
            which a header is written, to be linked into an application.
          params: "embedded", where the parameters are in the library, or "beside": in model.safetensors, which `relayc.load_module` maps.
          prefix: what comes before the names of the functions, an identifier of C: `__tvm_ffi_PREFIXmain`.
          bundle: whether the OpenMP runtime is copied beside a shared library that needs it, where it is not there.

        Returns:
          The files that are there now, the library first.

        Raises:
          ValueError: the module was not compiled here, the path has another ending, there is no linker, or another argument is wrong.
          OSError: a file cannot be written.
        """
        if self.exporter is None:
            raise ValueError("export_library: expected a module that relayc.compile gave, found one without a compiler")
        if params not in ("embedded", "beside"):
            raise ValueError(f"export_library: params: expected 'embedded' or 'beside', found {params!r}")
        return self.exporter(self._exported(), ExportRequest(Path(path).absolute(), params == "beside", prefix, bundle))

    def _exported(self) -> ExportedProgram:
        """The program and the programs of imported modules. Raises ValueError if one of them was not compiled here."""
        others = [module for module in self.imported_modules if not isinstance(module, Module)]
        if others or self.source is None:
            raise ValueError(f"export_library: expected imported modules that relayc.compile gave, found {others[0] if others else self!r}")
        return ExportedProgram(self._artifact, self.source(), tuple(module._exported() for module in self.imported_modules))

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs of `main`, in order."""
        return tuple(spec.name for spec in self.inputs)

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the outputs of `main`, in order."""
        return tuple(spec.name for spec in self.outputs)

    @property
    def constructors(self) -> "dict[str, Constructor]":
        """The constructors of the data types of functions, by name: `module.constructors["Cons"](1, rest)` is a value."""
        native = self._artifact.native
        return {} if native is None else {c.name_hint: c for data in native.data for c in data.constructors}

    def function_names(self) -> tuple[str, ...]:
        """Names of all functions: the public programs, `main` first of all, then the kernels."""
        return tuple(self._functions)

    def get_function(self, name: str, query_imports: bool = False) -> Any:
        """The function of a name; the same as `module[name]`.

        With `query_imports`, imported modules and their imports are searched next, in order; a tvm-ffi module returns a packed function.
        Raises KeyError if there is none.
        """
        if name in self._functions:
            return self._functions[name]
        found = self._imports.find(name) if query_imports else None
        if found is None:
            raise KeyError(f"no function {name!r} in the module; it has {', '.join(self._functions)}{nearest(name, self._functions)}")
        return found

    def import_module(self, module: Any) -> None:
        """Imports a relayc or tvm-ffi module: `get_function(name, query_imports=True)` finds its functions.

        Raises:
          TypeError: it is no module.
          ValueError: it imports this one.
        """
        self._imports.add(self, module)

    @property
    def imported_modules(self) -> tuple[Any, ...]:
        """The modules that this one imports, in order."""
        return self._imports.modules

    # ---- TVM's three artefacts: graph, library, parameters

    def graph(self, function: str | None = None, sizes: Mapping[str, int] | None = None) -> "Graph":
        """A program as a graph of calls on tensors (see runtime.graph).

        Args:
          function: a program; by default `main`.
          sizes: the values of its symbols, for a program that has some.

        Raises:
          KeyError: there is no such program.
          ValueError: the program is no graph, as what it calls depends on data; `sizes` are not those of its symbols.
        """
        from relayc.runtime.graph import program_graph

        return program_graph(self._on_tensors(function).name, self._code.programs, self._code.kernels, self._artifact.parameters, sizes)

    @property
    def graph_json(self) -> str:
        """`main` in TVM's graph JSON. Raises ValueError if it is no graph, or has symbols (see `graph`)."""
        return self.graph().json()

    @property
    def lib(self) -> Library:
        """The kernels as packed functions."""
        return Library({name: self._code.packed(name) for name in self._code.kernels}, self._imports, self)

    @property
    def params(self) -> dict[str, np.ndarray]:
        """The parameters by name, in the layouts that kernels read: views of the module's memory, not to be written."""
        return parameter_arrays(self._artifact)

    def save_params(self, path: str | os.PathLike[str]) -> None:
        """Writes the parameters as a safetensors file. Raises OSError if it cannot be written."""
        save_param_dict_to_file(self.params, path)

    def load_params(self, params: str | os.PathLike[str] | Mapping[str, Any]) -> None:
        """Gives parameters other values, for calls that begin from now on.

        Args:
          params: by name, or a safetensors file of such; they are copied. What is not named stays.

        Raises:
          ValueError: a name that no parameter has, another shape or dtype, or no safetensors file.
        """
        given = params if isinstance(params, Mapping) else load_param_dict_from_file(params)
        self._artifact = with_parameters(self._artifact, given)
        self._code.set_params(self._artifact.params)

    def __getitem__(self, name: str) -> Any:
        """The function of a name. If no function is named "default", `module["default"](device)` creates a graph executor, as for a module
        from `relay.build`. Raises KeyError if there is none."""
        if name == "default" and name not in self._functions:
            from relayc.runtime.graph_executor import GraphExecutor  # which knows modules

            return lambda *devices: GraphExecutor(self, device=devices[0] if devices else None)
        return self.get_function(name)

    def _program(self, name: str | None, public: bool = True) -> ProgramInfo:
        """A program; by default `main`. Raises KeyError if there is no program, or no public program, of the name."""
        name = self._default if name is None else name
        found = self._code.programs.get(name)
        if found is None or (public and not found.public):
            known = [program.name for program in self._code.programs.values() if program.public or not public]
            raise KeyError(f"no program {name!r} in the module; it has {', '.join(known)}{nearest(name, known)}")
        return found

    def _on_tensors(self, name: str | None) -> ProgramInfo:
        """The same of a program without values that are no tensors. Raises ValueError for another one."""
        from relayc.runtime.native import NativeFunction

        found = self._program(name)
        if isinstance(self._functions[found.name], NativeFunction):
            raise ValueError(
                f"{found.name}: expected a program on tensors alone, found one with data types, references or functions as values"
            )
        return found

    def call_sites(self, function: str | None = None) -> tuple[CallSite, ...]:
        """The places that call kernels and packed functions in a program and in those that it calls: the rows of its profile.

        Args:
          function: a program; by default `main`.

        Raises:
          KeyError: there is no such program.
        """
        return tuple(call_sites(self._program(function, public=False).name, self._code.programs, self._code.kernels).values())

    def run(self, inputs: Mapping[str, Any], function: str | None = None) -> dict[str, np.ndarray]:
        """Runs a program on inputs by name and gives the outputs by name.

        Args:
          function: a public program; by default `main`.

        Raises:
          KeyError: there is no such program.
          TypeError, ValueError: as a call of the program does, and for a name that is missing or unknown.
        """
        program = self._functions[self._program(function).name]
        results = program(*in_order(inputs, program.inputs))
        names = [spec.name for spec in program.outputs]
        return dict(zip(names, results if isinstance(results, tuple) else (results,), strict=True))

    def arena_bytes(self, inputs: Mapping[str, Any] | Sequence[Any], function: str | None = None) -> int:
        """Memory for intermediate tensors that a call of a program takes.

        Args:
          inputs: of the program, by name or in order.
          function: a public program; by default `main`.

        Raises:
          KeyError: there is no such program.
          TypeError, ValueError: as a call of the program does.
        """
        program = self._functions[self._on_tensors(function).name]
        with program.host_values():
            return program.arena_bytes(in_order(inputs, program.inputs))

    def profile(self, inputs: Mapping[str, Any] | Sequence[Any], repeat: int = 10, function: str | None = None) -> Profile:
        """Times every call of a kernel or packed function that a program makes one by one, and whole calls; medians over `repeat` rounds.

        Branches, loops and calls of other programs are followed as the data says. A row is a call site: its time is that of all its calls
        in a round.

        Args:
          inputs: of the program, by name or in order.
          function: a public program; by default `main`.

        Returns:
          The times, which know what the machine can do at most: that is measured when it is asked for, in about a second.

        Raises:
          KeyError: there is no such program.
          TypeError, ValueError: as a call of the program does; `repeat` is less than 1. What packed functions raise arrives as it is.
        """
        from relayc.runtime.step_times import profile_steps

        if not isinstance(repeat, int) or repeat < 1:
            raise ValueError(f"repeat: expected at least 1, found {repeat}")
        info = self._on_tensors(function)
        program = self._functions[info.name]
        given = in_order(inputs, program.inputs)
        program(*given)  # raises the errors of the call
        return profile_steps(self._code, program, given, self._artifact.params, repeat, self._measure_peak)

    def time_evaluator(
        self, func_name: str, dev: Device | str | None = None, number: int = 10, repeat: int = 1, **options: Any
    ) -> Callable[..., BenchmarkResult]:
        """Makes a function that times a function of the module: `module.time_evaluator("main", number=10, repeat=3)(x).mean`, in seconds.

        Args:
          func_name: a program or a kernel.
          dev: that of the module.
          number: of how many calls each of the times is the mean.
          repeat: how many times are taken; one call before them is not timed.
          options: min_repeat_ms, cooldown_interval_ms, repeats_to_cooldown (see `GraphExecutor.benchmark`).

        Raises:
          KeyError: there is no such function.
          ValueError: another device; when it times, counts below 1 and what a call raises.
        """
        if dev is not None and Device(dev) != self.device:
            raise ValueError(f"time_evaluator: expected the device {self.device}, found {dev}")
        return evaluator(self.get_function(func_name), number, repeat, self.device.synchronize, **options)

    def __repr__(self) -> str:
        return f"<relayc module: {self._functions[self._default]!r}, {len(self.kernels)} kernels, on {self.device}, target {self.target}>"

    def _repr_html_(self) -> str | None:
        """The program as HTML for a notebook; None if the viewer is not installed."""
        try:
            # By name, because the viewer imports this module.
            return importlib.import_module("relayc").notebook_html(self)
        except ModuleNotFoundError:
            return None
