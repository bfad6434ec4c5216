"""Helpers of the program tests: te text with several functions to machine code, called by name, and replayed as the runtime is told."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import tvm_ffi

from relayc.dialects.mlir import ir
from relayc.dialects.relay import IRModule
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.lowering import materialize_results, te_to_tir
from relayc.pipelines.llvm.packed import add_packed_entries, entry_addresses
from relayc.pipelines.program.entries import packed_entries
from relayc.pipelines.program.parameters import Blob
from relayc.pipelines.targets.cpu.jit import jit
from relayc.pipelines.targets.cpu.lowering import lower_to_llvm
from relayc.runtime.artifact import (
    Branch,
    BufferRef,
    Loop,
    Node,
    PackedCall,
    ProgramCall,
    ProgramInfo,
    Step,
    aligned_empty,
    numpy_dtype,
)
from relayc.runtime.tensor import to_argument
from relayc.runtime.threads import Team

GARBAGE = 0xA5


def pointwise(name: str, body: str, *types: str, attributes: str = "") -> str:
    """A kernel `@name` that computes %r of %0, %1, ... element by element; `types` are those of its operands and its result."""
    *ins, out = types
    rank = out.count("x")
    dims = ", ".join(f"d{i}" for i in range(rank))
    maps = ", ".join([f"affine_map<({dims}) -> ({dims})>"] * len(types))
    kinds = ", ".join(['"parallel"'] * rank)
    arguments = ", ".join(f"%a{i}: tensor<{t}>" for i, t in enumerate(ins))
    values, tensors = ", ".join(f"%a{i}" for i in range(len(ins))), ", ".join(f"tensor<{t}>" for t in ins)
    elements = ", ".join([*(f"%{i}: {t.split('x')[-1]}" for i, t in enumerate(ins)), f"%o: {out.split('x')[-1]}"])
    operands = f"ins({values} : {tensors}) " if ins else ""
    return f"""
func.func private @{name}({arguments}) -> tensor<{out}> attributes {{{attributes}}} {{
  %e = tensor.empty() : tensor<{out}>
  %g = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} {operands}outs(%e : tensor<{out}>) {{
  ^bb0({elements}):
    {body}
    linalg.yield %r : {out.split("x")[-1]}
  }} -> tensor<{out}>
  return %g : tensor<{out}>
}}
"""


def condition(value: str, name: str) -> str:
    """Reads the tensor %value of one i8 as the i1 %name."""
    return f"%{name}_element = tensor.extract %{value}[] : tensor<i8>\n%{name} = arith.trunci %{name}_element : i8 to i1"


class Programs:
    """A te module that has been compiled.

    Attributes:
      tir: text of the tir stage.
      programs: what the runtime is told of them, by name.
    """

    def __init__(self, text: str, params: Mapping[str, np.ndarray] | None = None, config: Mapping[str, object] | None = None) -> None:
        target = Target("cpu")
        with PassContext(config=dict(config or {})), ThreadPoolExecutor(1) as pool:
            mod = te_to_tir(materialize_results(IRModule.parse(text, params)))
            mod.module.operation.verify()
            self.tir = str(mod.module)
            self.programs: dict[str, ProgramInfo] = {p.name: p for p in mod.programs}
            self.kernels = {k.name: k for k in mod.kernels}
            self.arena_bytes = max(int(p.arena_bytes) for p in mod.programs)
            self.params = Blob(mod.take_layout(), mod.params_bytes, pool, 1).result()
            entries = packed_entries(mod, {})
            with mod.context, ir.Location.unknown():
                lower_to_llvm(mod.module, target)
                add_packed_entries(mod.module, entries)
                assert mod.module.operation.verify()
                self.engine = jit(mod.module, target)
        addresses = entry_addresses(self.engine, entries)
        self.functions = {
            name: tvm_ffi.Function.__from_extern_c__(address, keep_alive_object=self.engine) for name, address in addresses.items()
        }
        for function in self.functions.values():
            function.release_gil = True

    def __call__(self, name: str, *arrays: np.ndarray, threads: int = 1) -> list[np.ndarray]:
        """The outputs of a public program, in an arena that holds garbage."""
        outputs = _outputs(self.programs[name])
        arena = self._arena()
        with Team(threads):
            self.functions[name](*map(to_argument, (*arrays, *outputs, arena, self.params)))
        return outputs

    def _arena(self) -> np.ndarray:
        arena = aligned_empty(self.arena_bytes)
        arena[: 1 << 20] = GARBAGE
        return arena

    def replay(self, name: str, *arrays: np.ndarray) -> list[np.ndarray]:
        """The same, step by step as the runtime is told: every kernel called by itself."""
        outputs = _outputs(self.programs[name])
        with Team(1):
            self._run(self.programs[name].steps, arrays, outputs, self._arena())
        return outputs

    def _run(self, nodes: Sequence[Node], inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], arena: np.ndarray) -> None:
        def tensor(ref: BufferRef) -> np.ndarray:
            if ref.space in ("input", "output"):
                array = (inputs if ref.space == "input" else outputs)[ref.index]
                return array.view(numpy_dtype(ref.spec.dtype)).reshape(ref.spec.shape)
            blob = arena if ref.space == "arena" else self.params
            return blob[ref.offset : ref.offset + ref.spec.num_bytes].view(numpy_dtype(ref.spec.dtype)).reshape(ref.spec.shape)

        for node in nodes:
            if isinstance(node, Branch):
                self._run(node.then if tensor(node.condition) else node.otherwise, inputs, outputs, arena)
            elif isinstance(node, Loop):
                self._run(node.condition_steps, inputs, outputs, arena)
                while tensor(node.condition):
                    self._run(node.body, inputs, outputs, arena)
                    self._run(node.condition_steps, inputs, outputs, arena)
            else:
                ins, outs = [tensor(r) for r in node.inputs], [tensor(r) for r in node.outputs]
                if isinstance(node, ProgramCall):
                    self._run(self.programs[node.function].steps, ins, outs, arena[node.arena :])
                else:
                    assert isinstance(node, (Step, PackedCall))
                    function = self.functions[node.kernel] if isinstance(node, Step) else tvm_ffi.get_global_func(node.name)
                    function(*map(to_argument, (*ins, *outs)))


def _outputs(program: ProgramInfo) -> list[np.ndarray]:
    found = []
    for spec in program.outputs:
        memory = aligned_empty(spec.num_bytes)
        memory[:] = GARBAGE
        found.append(memory.view(numpy_dtype(spec.dtype)).reshape(spec.shape))
    return found
