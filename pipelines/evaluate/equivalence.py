"""Equivalence: passes checked against what programs mean.

The program is evaluated before and after every pass on the same inputs: relay by its operators' compute rules, te by its interpreter, and
blocks and loops before and after a schedule by theirs. The full tir stage, with its vectors and intrinsics, has no interpreter: after
TeToTir the program is compiled and run, and compared with what it gives in te.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from relayc.dialects.discardable import INPUT_DTYPES, NAME, OUTPUT_DTYPES
from relayc.dialects.functions import signature_of, symbols_of, value_attributes
from relayc.dialects.locations import source_of
from relayc.dialects.mlir import ir
from relayc.dialects.operations import last_operation
from relayc.dialects.relay.base import RelayError
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.types import STRING, is_narrow, numpy_dtype
from relayc.dialects.tir.names import FORM
from relayc.pipelines.context.instruments import KernelSchedule, PassInfo, PassInstrument
from relayc.pipelines.evaluate import relay, te, tir
from relayc.pipelines.evaluate.cases import Case, case_text, cases_of, random_array, sizes_of
from relayc.pipelines.evaluate.errors import Outside, Refused, Unknown
from relayc.pipelines.te.signature import flat_tensors, te_array
from relayc.symbolic import Ranges

Results = list[np.ndarray] | Exception
"""The results of a function, or the error that it raised."""

_ALLOWED = {"f64": 2.0**-40, "f32": 2.0**-13, "f16": 2.0**-7, "bf16": 2.0**-5}
"""How far apart results may be, relative to the largest one, by the coarsest format in which the program computes: 2^11 roundings of f32 in
a row, 16 or 8 of the narrow formats, whose sums are of f32. An element is a sum of terms that may be much larger than it is, but hardly
larger than the largest element; sums themselves are not rounded here, so that their length does not count."""

_MOST_POINTS = 1 << 16
"""Points of the blocks of a kernel whose schedule is checked: they are computed one by one."""


@dataclass(frozen=True)
class Difference:
    """A pass or schedule after which a program or kernel has different results.

    Attributes:
      kind: "pass" or "schedule".
      name: of the pass or schedule.
      where: the function, the result, and the operation that computes it.
      case: the inputs: their seed, or their number, and the sizes of symbols.
      difference: the largest difference; infinite if one program fails.
      allowed: tolerance for rounding.
      text: describes the difference if it is not a number.
    """

    kind: str
    name: str
    where: str
    case: str
    difference: float
    allowed: float
    text: str = ""

    def __str__(self) -> str:
        what = self.text or f"results differ by up to {self.difference:.3g} (allowed: {self.allowed:.3g})"
        return f"{self.kind} {self.name} changes what the program gives: {self.where}, for {self.case}: {what}"


class NotEquivalent(RelayError):
    """A pass changes the results of a program.

    Attributes:
      difference: describes the change.
    """

    def __init__(self, difference: Difference) -> None:
        super().__init__(str(difference))
        self.difference = difference


class Equivalence(PassInstrument):
    """Evaluates the program before and after every pass, and names the pass after which results differ.

    Results may differ by what rounding explains: 2^-13 of the largest element of a tensor where the coarsest floating-point format in the
    program is f32, 2^-40 for f64, 2^-7 for f16, 2^-5 for bf16. Integers must be equal, and NaN and infinities in the same places. Inputs
    whose sizes the program refuses before a pass are not compared. `unchecked` lists what cannot be evaluated, such as packed functions.

    Args:
      inputs: of main, each as arrays by name; made up where None, for all public functions: floats and integers of both signs.
      sizes: the sizes of symbols that inputs are made up for, [1, 7, 1031] by name; by default 1, a prime, the typical size, and more than
        1,024 where the inputs stay small, within the ranges.
      raise_on_difference: whether a difference is an error, else it is gathered in `differences`.

    Attributes:
      differences: what was found.
      unchecked: reasons why something was not compared.

    Raises:
      NotEquivalent: a RelayError that names the pass, the function, the operation, the input and the largest difference.
    """

    observes_schedules = True

    def __init__(
        self,
        inputs: Sequence[Mapping[str, np.ndarray]] | None = None,
        sizes: Mapping[str, Sequence[int]] | None = None,
        raise_on_difference: bool = True,
    ) -> None:
        self._inputs, self._sizes, self._raises = inputs, sizes, raise_on_difference
        self.differences: list[Difference] = []
        self.unchecked: list[str] = []
        self._forget()

    def _forget(self) -> None:
        self._contents: tuple[str, dict[str, np.ndarray]] | None = None
        self._cases: list[Case] = []
        self._results: list[Results] = []
        self._operators: relay.Operators = {}
        self._te: IRModule | None = None

    def enter_pass_ctx(self) -> None:
        self._forget()

    def exit_pass_ctx(self) -> None:
        self._forget()

    # ---- passes

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        if info.name == "TeToTir":
            self._te = _copy(mod)
        if info.composite or info.stage in ("tir", "llvm"):
            return
        if self._contents is None or not _same(self._contents, _contents(mod)):
            self._contents = _contents(mod)
            self._cases = cases_of(mod, self._inputs, self._sizes)
            self._results = self._evaluate(mod, info)
            if self._inputs is None and any(isinstance(found, Refused) for found in self._results):
                # Indices of 0 are in range of everything.
                given = zip(self._cases, self._results, strict=True)
                self._cases = [case.with_zeros() if isinstance(found, Refused) else case for case, found in given]
                self._results = self._evaluate(mod, info)
            refused = [f"{case.words}: {r}" for case, r in zip(self._cases, self._results, strict=True) if isinstance(r, Refused)]
            self.unchecked += refused if len(refused) == len(self._cases) else []

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        if info.name == "TeToTir":
            self._check_code(info)
        if info.stage in ("tir", "llvm") or self._contents is None:
            return
        before, after = self._contents, _contents(mod)
        if _same(before, after):
            return
        found = self._evaluate(mod, info)
        allowed = max(_allowed(before[0]), _allowed(after[0]))
        expected, self._results, self._contents = self._results, found, after
        self._compare(mod, info.name, expected, found, allowed)

    def _evaluate(self, mod: IRModule, info: PassInfo) -> list[Results]:
        functions = symbols_of(mod.module)
        in_te = any(INPUT_DTYPES.on(f) for f in functions.values())
        if in_te:
            program: Any = te.TeInterpreter(mod.module, {key: te_array(array) for key, array in mod.params.items()})
        else:
            program = relay.RelayInterpreter(mod, self._operators)
        return [self._run(program, functions[case.function], case, info.name) for case in self._cases]

    def _run(self, program: Any, function: ir.OpView, case: Case, name: str) -> Results:
        found = _outcome(program, case.function, case.arrays, case.sizes)
        if isinstance(found, Exception):
            if isinstance(found, Unknown):
                self.unchecked.append(f"{name}: {found}")
            return found
        return [np.asarray(a).view(numpy_dtype(t)) for a, t in zip(found, _result_dtypes(function), strict=False)]

    def _compare(self, mod: IRModule, name: str, expected: Sequence[Results], found: Sequence[Results], allowed: float) -> None:
        functions = symbols_of(mod.module)
        for case, before, after in zip(self._cases, expected, found, strict=True):
            worst = _difference(before, after, allowed)
            if worst is not None:
                number, text, difference, limit = worst
                where = _where(functions[case.function], number)
                self._report(Difference("pass", name, where, case.words, difference, limit, text))
                return

    def _report(self, difference: Difference) -> None:
        self.differences.append(difference)
        if self._raises:
            raise NotEquivalent(difference)

    # ---- code

    def _check_code(self, info: PassInfo) -> None:
        """Compiles the input of TeToTir, and compares the results of the code with the interpreted results."""
        from relayc.pipelines.context.passes import PassContext
        from relayc.pipelines.context.target import Target
        from relayc.pipelines.driver.build import build
        from relayc.runtime.artifact import Artifact
        from relayc.runtime.module import Module

        mod, self._te = self._te, None
        if mod is None or not self._cases:
            return
        ctx = PassContext.current()
        functions = symbols_of(mod.module)
        dtypes = {name: [numpy_dtype(t) for t in INPUT_DTYPES.get(f, ())] for name, f in functions.items()}
        copy, text = _copy(mod), _contents(mod)[0]
        with PassContext(ctx.opt_level, ctx.required_pass, ctx.disabled_pass, ctx.config):
            artifact = build(copy, ctx.get("target") or Target("cpu"), None, None, None, False, None, None, "f32", first="tir")
        assert isinstance(artifact, Artifact)
        module = Module(artifact)
        found: list[Results] = []
        for case in self._cases:
            arrays = [a.view(t) for a, t in zip(case.arrays, dtypes[case.function], strict=True)]
            try:
                given = module[case.function](*arrays)
            except ValueError as error:
                found.append(Refused(str(error)))
            except RuntimeError as error:
                self.unchecked.append(f"{info.name}: {error}")
                return
            else:
                found.append(list(given) if isinstance(given, (list, tuple)) else [given])
        self._compare(mod, info.name, self._results, found, _allowed(text))

    # ---- schedules

    def run_on_schedule(self, found: KernelSchedule) -> None:
        what = f"schedule {found.schedule} of {found.kernel}"
        try:
            after = tir.TirInterpreter(IRModule.parse(found.after))
            before = _kernel(found.before, found.kernel)
        except (Unknown, ir.MLIRError) as error:
            self.unchecked.append(f"{what}: {error}")
            return
        allowed = max(_allowed(found.before), _allowed(found.after))
        for seed, sizes in enumerate(sizes_of(after.symbols, Ranges.current(), self._sizes or {})):
            if after.points(sizes) > _MOST_POINTS:
                self.unchecked.append(f"{what}: {after.points(sizes)} points for {case_text(seed, sizes)}")
                continue
            rng = np.random.default_rng(seed)
            arrays = [random_array(rng, shape, dtype.name) for shape, dtype in after.inputs(sizes)]
            expected, given = (_outcome(run, arrays, sizes) for run in (before, after))
            worst = _difference(expected, given, allowed)
            if worst is not None:
                number, text, difference, limit = worst
                where = f"kernel @{found.kernel}, result {number}"
                self._report(Difference("schedule", found.schedule, where, case_text(seed, sizes), difference, limit, text))
                return


def check(model: Any, **options: Any) -> Equivalence:
    """Compiles a model as `relayc.compile` does, and returns the instrument with the passes that change the results.

    Args:
      options: inputs and sizes of Equivalence; all others are passed to `relayc.compile`.
    """
    from relayc.pipelines.context.passes import PassContext
    from relayc.pipelines.driver.compile import compile

    own = {name: options.pop(name) for name in ("inputs", "sizes") if name in options}
    instrument = Equivalence(**own, raise_on_difference=False)
    outer = PassContext.current()
    with PassContext(outer.opt_level, outer.required_pass, outer.disabled_pass, outer.config, [*outer.instruments, instrument]):
        compile(model, **{"stop_after": "tir", **options})
    return instrument


def _copy(mod: IRModule) -> IRModule:
    with mod.context, ir.Location.unknown():
        return IRModule(ir.Module.parse(str(mod.module)), mod.params)


def _outcome(run: Callable[..., list[np.ndarray]], *arguments: Any) -> Results:
    """The results of a call, or the error that it raised."""
    try:
        return run(*arguments)
    except (Refused, Outside, Unknown) as error:
        return error


def _kernel(text: str, name: str) -> Callable[..., list[np.ndarray]]:
    """A kernel of blocks and loops, or of the te stage, as a function of arrays and sizes."""
    mod = IRModule.parse(text)
    if any(FORM in f.attributes for f in symbols_of(mod.module).values()):
        return tir.TirInterpreter(mod)
    program = te.TeInterpreter(mod.module)
    return lambda arrays, sizes: program(name, arrays, sizes)


def _contents(mod: IRModule) -> tuple[str, dict[str, np.ndarray]]:
    return mod.module.operation.get_asm(assume_verified=True), dict(mod.params)


def _same(a: tuple[str, dict[str, np.ndarray]], b: tuple[str, dict[str, np.ndarray]]) -> bool:
    return a[0] == b[0] and a[1].keys() == b[1].keys() and all(a[1][key] is b[1][key] for key in a[1])


def _allowed(text: str) -> float:
    """The tolerance for rounding in a program, according to the types in its text."""
    return max((_ALLOWED[name] for name in set(re.findall(r"(?:\b|x)(bf16|f16|f32|f64)\b", text))), default=0.0)


def _result_dtypes(function: ir.OpView) -> list[str]:
    """The dtypes of the results of a function, as callers see them."""
    if OUTPUT_DTYPES.on(function):
        return list(OUTPUT_DTYPES.of(function))
    return [t.dtype for t in flat_tensors(signature_of(function).results)]


def _difference(expected: Results, found: Results, allowed: float) -> tuple[int, str, float, float] | None:
    """The result that differs most from the expected one, its description, its difference and the tolerance; None if all agree."""
    if isinstance(expected, Exception) or isinstance(found, Unknown):
        return None
    if isinstance(found, Exception):
        return 0, f"{type(found).__name__.lower()}: {found}", np.inf, 0.0
    if len(expected) != len(found):
        return 0, f"expected {len(expected)} results, found {len(found)}", np.inf, 0.0
    worst = None
    for i, (a, b) in enumerate(zip(expected, found, strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return i, f"expected {a.dtype} of shape {a.shape}, found {b.dtype} of {b.shape}", np.inf, 0.0
        off, limit = _distance(a, b, allowed)
        if off > limit and (worst is None or off > worst[2]):
            worst = i, "", off, limit
    return worst


def _distance(a: np.ndarray, b: np.ndarray, allowed: float) -> tuple[float, float]:
    """The largest difference of two arrays, infinite where one has NaN or an infinity and the other has not, and the limit."""
    if a.dtype == STRING or a.dtype.kind in "iub" or "int" in a.dtype.name:
        differs = a != b
        if a.dtype == STRING or not differs.any():
            return float(differs.any()), 0.0
        return float(np.max(np.abs(a.astype(np.float64) - b.astype(np.float64)))), 0.0
    wide, other = a.astype(np.float64), b.astype(np.float64)
    finite = np.isfinite(wide) & np.isfinite(other)
    if not np.array_equal(wide[~finite], other[~finite], equal_nan=True):
        return np.inf, 0.0
    own = 2 * float(ml_dtypes.finfo(a.dtype).eps) if is_narrow(a.dtype.name) else 0.0
    size = float(np.max(np.abs(wide[finite]), initial=0))
    return float(np.max(np.abs(wide[finite] - other[finite]), initial=0)), max(allowed, own) * size


def _where(function: ir.OpView, number: int) -> str:
    """Names a result of a function and the operation that computes it."""
    name = f"@{ir.StringAttr(function.attributes['sym_name']).value}"
    attributes = value_attributes(function, "res_attrs") if "res_attrs" in function.attributes else []
    label = f"result {number}"
    if number < len(attributes) and NAME.on(attributes[number]):
        label += f" ({NAME.of(attributes[number])})"
    block = function.regions[0].blocks[0]
    operands = last_operation(block).operands
    if number >= len(operands) or isinstance(operands[number].owner, ir.Block):
        return f"{name}, {label}"
    owner = operands[number].owner.operation
    return f"{name}, {label}, {owner.name} at {source_of(owner.location)}"
