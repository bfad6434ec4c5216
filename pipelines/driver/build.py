"""A model through the four stages to machine code and a parameter blob."""

import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from relayc.dialects.discardable import SIGNATURE
from relayc.dialects.mlir import ir
from relayc.dialects.relay.errors import NeedsControl, RelayError
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.scopes import check_scopes
from relayc.dialects.relay.specializations import ask_for
from relayc.frontend import import_model
from relayc.interrupts import deferred
from relayc.pipelines.context.backend import find_backend
from relayc.pipelines.context.instruments import DumpIR, KeepSchedules, ir_text
from relayc.pipelines.context.passes import PassContext
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.lowering import te_pipeline, te_to_tir, tir_to_llvm
from relayc.pipelines.graph import graph_pipeline
from relayc.pipelines.graph.to_mixed_precision import NARROW
from relayc.pipelines.history.programs import recorded_context
from relayc.pipelines.history.records import RECORDS, Records, current_records
from relayc.pipelines.program.entries import packed_entries
from relayc.pipelines.program.parameters import Blob
from relayc.pipelines.program.single import te_program, written_in_te
from relayc.pipelines.program.tir import TirModule
from relayc.pipelines.tir.strategy.table import FUNCTIONS
from relayc.runtime.artifact import Artifact
from relayc.runtime.threads import usable_cpus
from relayc.symbolic import Size

if TYPE_CHECKING:
    from relayc.pipelines.control.program import ControlCode
    from relayc.pipelines.control.steps import ControlProgram


class StageTimes:
    """Seconds spent per stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def mark(self, stage: str) -> None:
        """Books the time since the last mark to `stage`."""
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._last
        self._last = now


@deferred()
def build(
    model: Any,
    target: Target,
    shapes: Mapping[str, Sequence[Size | str]] | None,
    opt_level: int | None,
    dump_ir: "str | os.PathLike | None",
    keep_ir: bool,
    stop_after: str | None,
    progress: Any,
    precision: str,
    first: str = "relay",
    dims: Mapping[str, int | tuple[int, int]] | None = None,
    specialize: Sequence[Mapping[str, int]] = (),
    schedules: Mapping[str, Any] | None = None,
    records: Records | None = None,
) -> Artifact | IRModule:
    """Compiles a model; the arguments are those of `relayc.compile`.

    Args:
      first: the stage to which `model` is lowered first: "tir" for a module in the te stage.
      records: measured numbers that hold; by default those that are current.
    """
    times = StageTimes()
    backend = find_backend(target.kind)
    steps_of_control: ControlProgram | None = None
    try:
        mod = import_model(model, shapes=shapes, dims=dims, progress=progress)
    except NeedsControl as error:
        if specialize:
            raise RelayError(
                "specialize: expected a program on tensors alone, found one with data types, references or functions"
            ) from None
        from relayc.pipelines.control.program import compiled_program

        steps_of_control, mod = compiled_program(error.program, dims)
    signature = SIGNATURE.get(mod.module.operation, "")
    if first == "relay" and written_in_te(mod):
        # A program written in the te stage (relayc.te) needs only the later passes.
        mod, first = te_program(mod), "tir"
        if stop_after == "te":
            return mod
        if stop_after == "relay":
            raise RelayError("stop_after: expected te or a later stage, as the module is of the te stage, found 'relay'")
    if first == "relay":
        check_scopes(mod.module)
    if specialize:
        with mod.context:
            ask_for(mod.main, specialize)
    times.mark("import")
    outer = PassContext.current()
    if precision not in target.precisions and not (precision in NARROW and outer.get("relay.ToMixedPrecision.force")):
        precision = "f32"
    config = {**outer.config, **target.precisions.get(precision, {}), "target": target, "relay.ToMixedPrecision.precision": precision}
    config[RECORDS] = current_records(target) if records is None else records
    if schedules:
        config[FUNCTIONS] = {**outer.get(FUNCTIONS), **schedules}
    kept = KeepSchedules()
    instruments = [*outer.instruments, *([DumpIR(dump_ir)] if dump_ir is not None else []), *([kept] if keep_ir else [])]
    level = outer.opt_level if opt_level is None else opt_level
    texts: dict[str, str] = {}
    steps = {"relay": graph_pipeline(), "te": te_pipeline, "tir": te_to_tir, "llvm": tir_to_llvm}
    threads = usable_cpus()
    context = PassContext(level, outer.required_pass, outer.disabled_pass, config, instruments)
    if first == "relay":
        context = recorded_context(mod, target, context, config[RECORDS])
    with (
        context,
        ThreadPoolExecutor(threads, "relayc-params") as pool,
    ):
        program: TirModule | None = None
        for stage, step in list(steps.items())[list(steps).index(first) :]:
            mod = step(mod)
            if keep_ir:
                texts[stage] = ir_text(mod.module.operation)
                if stage == "tir" and kept.found:
                    texts["blocks"] = "\n".join(map(str, kept.found))
            times.mark(stage)
            if stage == stop_after:
                return mod
            if stage == "tir":
                assert isinstance(mod, TirModule)
                program = mod
                if steps_of_control is None and not any(p.public for p in program.programs):
                    names = ", ".join(p.name for p in program.programs) or "none at all"
                    raise RelayError(f"expected a module with a public function, found private ones only: {names}")
                # Parameters are packed while LLVM works.
                blob = Blob(program.take_layout(), program.params_bytes, pool, threads)
        assert program is not None
        control: ControlCode | None = None
        if steps_of_control is not None:
            from relayc.pipelines.control.program import Compiled, control_code

            control = control_code(steps_of_control, Compiled({p.name: p for p in program.programs}, program.params_bytes))
        # The sizes of kernels are of no use outside.
        symbols = {name for p in program.programs for name in p.symbols}
        ranges = {name: (known.low, known.high) for name, known in mod.ranges.items() if name in symbols}
        with mod.context, ir.Location.unknown():
            given = {}
            if control is not None:
                given["linked"] = control.symbols, backend.control_part(control.text, list(control.symbols.values()), target)
            made = backend.machine_code(mod.module, target, packed_entries(program, ranges), **given)
        times.mark("codegen")
        params = blob.result()
        times.mark("params")
    return Artifact(
        functions=made.functions,
        keep_alive=made.owner,
        programs=program.programs if control is None else control.programs(program.programs),
        kernels=program.kernels,
        params=params,
        ranges=ranges,
        ir=texts,
        stats=times.seconds,
        target=str(target),
        precision=precision,
        lacking=target.lacking,
        device=backend.device_of(target),
        permissions=backend.permissions(program, target),
        code=made.code,
        strings=mod.strings,
        parameters=program.parameters,
        signature=signature,
        native=None if control is None else control.info,
    )
