"""ToMixedPrecision: products and convolutions of bf16 operands, summed in f32 (Relay's ToMixedPrecision, with bf16 for f16).

It runs on fusion groups, because what matters is how tensors are stored between kernels: within a kernel everything but the operands of
ALWAYS operators stays f32 in registers, so that a chain of operators rounds once. Operators are of three kinds, as in Relay:

- ALWAYS: their operands are bf16, their sums f32. Parameters are converted here, once.
- FOLLOW: they read a tensor as it is stored. What they give is stored as bf16 where their largest operands are.
- the rest (softmax, normalisations, exponentials, logarithms, sorting, ...) read and give f32: they lose too much to 8 bits. AVERAGES give
  f32 as well, but errors of what they read cancel out.

A tensor between kernels is stored as bf16 where an ALWAYS operator reads it, or where it was made of bf16 and none of the rest reads it.
Views and groups that only move elements are seen through. Inputs and outputs of the function stay f32; what an ALWAYS operator reads of
them is converted by a kernel of its own.
"""

import enum
from collections.abc import Callable, Sequence

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import build
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.structure import Constant, Fused, Yield
from relayc.dialects.relay.types import TensorType, numpy_dtype
from relayc.pipelines.graph.dead_code_elimination import erase_dead
from relayc.pipelines.graph.fuse_ops import VIEWS
from relayc.pipelines.graph.rewrite import drop_unused_params
from relayc.pipelines.passes import PassContext, config_option, functions, module_pass

config_option(
    "relay.ToMixedPrecision.precision", str, "f32", "bf16 makes products and convolutions multiply in bf16; f32 leaves the program"
)
config_option("relay.ToMixedPrecision.force", bool, False, "compile(precision='bf16') also for targets without instructions for it: slow")

ALWAYS = frozenset(
    [f"relay.nn_conv{n}d{kind}" for n in (1, 2, 3) for kind in ("", "_transpose")]
    + ["relay.nn_dense", "relay.nn_matmul", "relay.nn_batch_matmul", "relay.nn_attention"]
)
FACTORS = {"relay.nn_attention": 3}
"""How many operands of an ALWAYS operator are multiplied, where that is not two: the mask of attention stays as it is."""

_POOLED = [f"relay.nn_{kind}max_pool{n}d" for n in (1, 2, 3) for kind in ("", "adaptive_")]
_MOVED = ["reshape", "expand_dims", "squeeze", "nn_batch_flatten", "transpose", "reverse", "layout_transform", "nn_depth_to_space"]
_MOVED += ["nn_space_to_depth", "strided_slice", "split", "concatenate", "stack", "nn_pad", "nn_mirror_pad", "broadcast_to", "tile"]
_MOVED += ["repeat", "copy", "nn_global_max_pool2d", "nn_relu"]
EXACT = frozenset([*_POOLED, *(f"relay.{name}" for name in _MOVED)])
"""FOLLOW operators that give elements of what they read: the same in bf16 as in f32."""

_AVERAGED = ["nn_global_avg_pool2d", "mean", "sum", *(f"nn_{kind}avg_pool{n}d" for n in (1, 2, 3) for kind in ("", "adaptive_"))]
AVERAGES = frozenset(f"relay.{name}" for name in _AVERAGED)

_ELEMENTWISE = ["add", "subtract", "multiply", "divide", "maximum", "minimum", "where", "nn_bias_add", "nn_leaky_relu", "nn_prelu", "clip"]
_ELEMENTWISE += ["abs", "negative", "sqrt", "rsqrt", "sigmoid", "tanh", "erf", "image_resize1d", "image_resize2d", "image_resize3d"]
_ELEMENTWISE += ["nn_upsampling", "nn_upsampling3d"]
FOLLOW = EXACT | frozenset(f"relay.{name}" for name in _ELEMENTWISE)

_TRANSPARENT = frozenset(["relay.constant", "relay.yield", "builtin.unrealized_conversion_cast"])
"""Operations inside groups that say nothing of them."""

NARROW, WIDE = "bfloat16", "float32"


class Reader(enum.Enum):
    """What reads a tensor: a product, an operator that takes it as it is, one that wants f32, or the function's caller."""

    PRODUCT = enum.auto()
    TOLERANT = enum.auto()
    STRICT = enum.auto()
    RESULT = enum.auto()


def _dtype(value: ir.Value) -> str:
    return TensorType.of(value).dtype


def _body(group: ir.OpView) -> ir.Block:
    return group.operation.regions[0].blocks[0]


def _captured(group: ir.OpView) -> list[ir.Value]:
    """The values that a group uses from around it, in the order of first use."""
    body = [op.operation for op in _body(group).operations]
    inside = {result for operation in body for result in operation.results}
    return list(dict.fromkeys(v for operation in body for v in operation.operands if v not in inside))


def _uses_in(group: ir.OpView, value: ir.Value) -> list[ir.OpOperand]:
    """The uses of a value in a group."""
    return [use for use in value.uses if use.owner.operation.parent == group.operation]


def _results(group: ir.OpView) -> list[ir.Value]:
    """The tensors that a group gives: its result, or none where that is a tuple, which is stored as it is."""
    return [r for r in group.operation.results if not isinstance(r.type, ir.TupleType)]


def _names(group: ir.OpView) -> set[str]:
    return {op.operation.name for op in _body(group).operations} - _TRANSPARENT


def _is_product(op: ir.OpView) -> bool:
    """Whether an operation is an ALWAYS operator on f32."""
    operation = op.operation
    return operation.name in ALWAYS and all(_dtype(v) == WIDE for v in (*_factors(operation), *operation.results))


def _factors(operation: ir.Operation) -> list[ir.Value]:
    return list(operation.operands)[: FACTORS.get(operation.name, 2)]


class _Precision:
    """The decision for one block of groups, and its rewriting, group by group in program order."""

    def __init__(self, block: ir.Block, mod: IRModule) -> None:
        self.block, self.mod = block, mod
        self.readers: dict[ir.Value, set[Reader]] = {}
        self.narrow: dict[ir.Value, ir.Value] = {}
        """In bf16, values that are stored as f32: constants converted here, and the results of kernels that convert."""
        self.stored: set[ir.Value] = set()
        """Values that have become bf16."""
        self.products: set[ir.Value] = set()
        """Results of the ALWAYS operators on f32."""

    def run(self) -> None:
        program = list(self.block.operations)
        for group in program:
            if isinstance(group, Fused):
                self.products |= {op.operation.results[0] for op in _body(group).operations if _is_product(op)}
        for op in reversed(program):
            self.readers |= {result: self._read_by(result) for result in op.operation.results}
        for op in program:
            if isinstance(op, Fused):
                self._convert(op)
            elif op.operation.name in VIEWS:
                source, result = op.operation.operands[0], op.operation.results[0]
                result.set_type(TensorType.of(result).with_dtype(_dtype(source)).to_mlir())
                if source in self.stored:
                    self.stored.add(result)

    # ---- how a tensor is stored

    def _read_by(self, value: ir.Value) -> set[Reader]:
        """Who reads a value, be it through views and groups of EXACT operators; the groups behind it are not converted yet."""
        found = set()
        for use in value.uses:
            operation = use.owner.operation
            if operation.block != self.block:
                group = operation.parent.opview if operation.parent is not None else None
                inside = isinstance(group, Fused) and group.operation.block == self.block
                found |= self._group_reads(group, value) if inside else {Reader.RESULT}
            elif operation.name in VIEWS:
                found |= self.readers[operation.results[0]]
            else:
                found.add(Reader.RESULT)
        return found

    def _multiplies(self, group: ir.OpView, value: ir.Value) -> bool:
        """Whether a group has a product that multiplies a value from around it."""
        users = [use.owner.operation for use in _uses_in(group, value)]
        return any(self._is_product(user) and value in _factors(user) for user in users)

    def _is_product(self, operation: ir.Operation) -> bool:
        return any(result in self.products for result in operation.results)

    def _group_reads(self, group: Fused, value: ir.Value) -> set[Reader]:
        names = _names(group)
        if self._multiplies(group, value):
            return {Reader.PRODUCT}
        if names <= EXACT:
            results = _results(group)
            behind = set().union(*(self.readers[r] for r in results)) if results else {Reader.STRICT}
            return {Reader.STRICT if reader == Reader.RESULT else reader for reader in behind}
        is_tolerant = names <= ALWAYS | FOLLOW | AVERAGES and names.isdisjoint(FACTORS)
        return {Reader.TOLERANT if is_tolerant else Reader.STRICT}

    def _is_stored_narrow(self, value: ir.Value, made_of_narrow: bool, is_exact: bool) -> bool:
        readers = self.readers[value]
        if Reader.RESULT in readers:
            return False
        return Reader.PRODUCT in readers or (made_of_narrow and (is_exact or Reader.STRICT not in readers))

    def _is_made_of_narrow(self, group: Fused, names: set[str]) -> bool:
        if names & ALWAYS:
            return names <= ALWAYS | FOLLOW
        operands = [v for v in _captured(group) if not isinstance(v.owner, Constant)]
        largest = max((TensorType.of(v).num_elements for v in operands), default=0)
        sources = [v for v in operands if TensorType.of(v).num_elements == largest]
        return names <= FOLLOW and bool(sources) and all(_dtype(v) == NARROW for v in sources)

    # ---- rewriting

    def _convert(self, group: Fused) -> None:
        operation, names = group.operation, _names(group)
        block = _body(group)
        with group.location:
            for value in _captured(group):
                if _dtype(value) == WIDE and self._multiplies(group, value):
                    with ir.InsertionPoint(operation):
                        narrow = self._narrowed(value)
                    for use in _uses_in(group, value):
                        use.owner.operation.operands[use.operand_number] = narrow
            made_of_narrow = self._is_made_of_narrow(group, names)
            results = _results(group)
            stored = [_dtype(r) == WIDE and self._is_stored_narrow(r, made_of_narrow, names <= EXACT) for r in results]
            if names <= EXACT and results and all(stored):
                self._narrow_body(group)
            else:
                narrow_values = {v for v in _captured(group) if v in self.stored}
                _widen_body(block, narrow_values, self._is_product)
            self._convert_results(operation, stored)

    def _narrowed(self, value: ir.Value) -> ir.Value:
        """A value in bf16, made at the ambient insertion point where it is not known."""
        if _dtype(value) == NARROW:
            return value
        if value not in self.narrow:
            array = self.mod.value_of(value)
            if array is not None:
                key = value.owner.key or "const"
                with ir.InsertionPoint(value.owner.operation):
                    self.narrow[value] = self.mod.constant(array.astype(numpy_dtype(NARROW)), f"{key}.bf16")
            else:
                type_ = TensorType.of(value).with_dtype(NARROW)
                group = ir.Operation.create(Fused.OPERATION_NAME, [type_.to_mlir()], regions=1)
                with ir.InsertionPoint(group.regions[0].blocks.append()):
                    Yield(build("cast", value, dtype=NARROW))
                self.narrow[value] = group.results[0]
            self.stored.add(self.narrow[value])
        return self.narrow[value]

    def _narrow_body(self, group: Fused) -> None:
        """Makes a group of EXACT operators work on bf16."""
        casts = _Casts()
        for op in list(_body(group).operations)[:-1]:
            operation = op.operation
            for position, value in enumerate(operation.operands):
                if _dtype(value) == WIDE and isinstance(value.owner, Constant):
                    with ir.InsertionPoint(group.operation):
                        operation.operands[position] = self._narrowed(value)
                elif _dtype(value) == WIDE:
                    operation.operands[position] = casts.get(value, NARROW, operation)
            for result, type_ in zip(operation.results, op.inferred_types(), strict=True):
                result.set_type(type_.to_mlir())

    def _convert_results(self, operation: ir.Operation, stored: Sequence[bool]) -> None:
        """Makes a group give bf16 where its results are stored so."""
        block = operation.regions[0].blocks[0]
        terminator = block.operations[len(block.operations) - 1].operation
        casts = _Casts()
        for position, (result, narrow) in enumerate(zip(operation.results, stored, strict=False)):  # a tuple is stored as it is
            if narrow:
                value = terminator.operands[position]
                if _dtype(value) == WIDE:
                    is_widened = value.owner.operation.name == "relay.cast" and _dtype(value.owner.data) == NARROW
                    terminator.operands[position] = value.owner.data if is_widened else casts.get(value, NARROW, terminator)
                result.set_type(terminator.operands[position].type)
                self.stored.add(result)


class _Casts:
    """Casts inside a group, one for each value and dtype."""

    def __init__(self) -> None:
        self.found: dict[tuple[ir.Value, str], ir.Value] = {}

    def get(self, value: ir.Value, dtype: str, before: ir.Operation) -> ir.Value:
        if (value, dtype) not in self.found:
            with ir.InsertionPoint(before):
                self.found[value, dtype] = build("cast", value, dtype=dtype)
        return self.found[value, dtype]


def _widen_body(block: ir.Block, narrow: set[ir.Value], is_product: Callable[[ir.Operation], bool]) -> None:
    """Makes a group work on f32 but for the operands of its products; `narrow` are the values from around it that have become bf16."""
    casts = _Casts()
    for op in list(block.operations):
        operation = op.operation
        factors = len(_factors(operation)) if is_product(operation) else 0
        for position, value in enumerate(operation.operands):
            if position < factors:
                if _dtype(value) == WIDE:
                    operation.operands[position] = casts.get(value, NARROW, operation)
            elif value in narrow:
                operation.operands[position] = casts.get(value, WIDE, operation)
        if factors and "out_dtype" in op.attr_specs:
            operation.attributes["out_dtype"] = ir.StringAttr.get(WIDE)
        elif factors:
            result = operation.results[0]
            uses = list(result.uses)
            result.set_type(TensorType.of(result).with_dtype(NARROW).to_mlir())
            with ir.InsertionPoint.after(operation):
                wide = build("cast", result, dtype=WIDE)
            for use in uses:
                use.owner.operation.operands[use.operand_number] = wide


@module_pass(opt_level=0, name="ToMixedPrecision")
def to_mixed_precision(mod: IRModule, ctx: PassContext) -> IRModule:
    """Products and convolutions of bf16 operands, summed in f32, where the configuration asks for bf16."""
    if ctx.get("relay.ToMixedPrecision.precision") == "bf16":
        for func in functions(mod):
            _Precision(func.regions[0].blocks[0], mod).run()
            erase_dead(func)
        drop_unused_params(mod)
    return mod
