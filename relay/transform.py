"""Passes on programs of the Relay language, by Relay's names."""

from collections.abc import Callable, Sequence
from typing import Any

from relayc.dialects.functions import symbol_name
from relayc.dialects.relay.errors import NeedsControl, RelayError
from relayc.dialects.relay.module import IRModule
from relayc.frontend.relay.ast.expr import Expr, Function, GlobalVar
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.ast.types import Type
from relayc.frontend.relay.inference import infer_expr, infer_module
from relayc.frontend.relay.kept import has_other_forms, with_kept
from relayc.frontend.relay.lowering import lower
from relayc.frontend.relay.passes import basic, byoc, closures, cps, normal_forms, operators, padding, plan_devices, sparse, unused
from relayc.frontend.relay.passes import convert_layout as layouts
from relayc.frontend.relay.passes import gradient as gradient_of_graphs
from relayc.frontend.relay.passes.cps import to_cps, un_cps
from relayc.frontend.relay.passes.defunctionalization import defunctionalization as Defunctionalization
from relayc.frontend.relay.passes.lazy_gradient_init import lazy_gradient_init
from relayc.frontend.relay.passes.manifest_lifetimes import manifest_lifetimes
from relayc.frontend.relay.passes.simplify import simplify
from relayc.frontend.relay.passes.split_args import split_args
from relayc.frontend.relay.raising import raised
from relayc.pipelines.context.instruments import PassInfo
from relayc.pipelines.context.passes import PassContext, find_pass
from relayc.relay.build import as_module
from relayc.relay.dynamic_to_static import dynamic_to_static
from relayc.relay.fake_quantization import fake_quantization_to_integer
from relayc.relay.folding import fold_constant, folded
from relayc.relay.partial_evaluate import partial_evaluate
from relayc.relay.passes import FunctionPass, ModulePass, Pass, PrintIR, Sequential, factory, function_pass, module_pass, pass_instrument

__all__ = [
    "AlterOpLayout",
    "AnnotateSpans",
    "AnnotateTarget",
    "BackwardFoldScaleAxis",
    "CanonicalizeCast",
    "CanonicalizeOps",
    "CapturePostDfsIndexInSpans",
    "CombineParallelBatchMatmul",
    "CombineParallelConv2D",
    "CombineParallelDense",
    "ConvertLayout",
    "DeadCodeElimination",
    "Defunctionalization",
    "DefuseOps",
    "DenseToSparse",
    "DialectPass",
    "DivToMul",
    "DynamicToStatic",
    "EliminateCommonSubexpr",
    "EtaExpand",
    "FakeQuantizationToInteger",
    "FastMath",
    "FlattenAtrousConv",
    "FlexibleShapeDispatch",
    "FoldConstant",
    "FoldConstantExpr",
    "FoldExplicitPadding",
    "FoldScaleAxis",
    "ForwardFoldScaleAxis",
    "FunctionPass",
    "FuseOps",
    "InferType",
    "InferTypeLocal",
    "Inline",
    "LambdaLift",
    "LayoutConfig",
    "LazyGradientInit",
    "Legalize",
    "ManifestLifetimes",
    "MergeCompilerRegions",
    "MergeComposite",
    "ModulePass",
    "PartialEvaluate",
    "PartitionGraph",
    "Pass",
    "PlanDevices",
    "PrintIR",
    "RemoveUnusedFunctions",
    "Sequential",
    "SimplifyExpr",
    "SimplifyInference",
    "SplitArgs",
    "ToANormalForm",
    "ToANormalFormExpr",
    "ToBasicBlockNormalForm",
    "ToCPS",
    "ToGraphNormalForm",
    "UnCPS",
    "function_pass",
    "gradient",
    "module_pass",
    "optimize",
    "pass_instrument",
    "to_cps",
    "un_cps",
]

AnnotateTarget = factory("AnnotateTarget", byoc.annotate_target)
MergeComposite = factory("MergeComposite", byoc.merge_composite)
MergeCompilerRegions = factory("MergeCompilerRegions", byoc.merge_compiler_regions)
PartitionGraph = factory("PartitionGraph", byoc.partition_graph)
AlterOpLayout = factory("AlterOpLayout", layouts.alter_op_layout, 3)
CanonicalizeOps = factory("CanonicalizeOps", layouts.canonicalize_ops, 3)
ConvertLayout = factory("ConvertLayout", layouts.convert_layout, 3, required=("InferType", "CanonicalizeOps"))
LayoutConfig = layouts.LayoutConfig
AnnotateSpans = factory("AnnotateSpans", basic.annotate_spans)
CanonicalizeCast = factory("CanonicalizeCast", operators.canonicalize_cast, 3)
CapturePostDfsIndexInSpans = factory("CapturePostDfsIndexInSpans", basic.capture_post_dfs_index_in_spans)
DeadCodeElimination = factory("DeadCodeElimination", unused.dead_code_elimination, 1)
DefuseOps = factory("DefuseOps", operators.defuse_ops, 3)
DivToMul = factory("DivToMul", operators.div_to_mul)
DynamicToStatic = factory("DynamicToStatic", dynamic_to_static, 2)
DenseToSparse = factory("DenseToSparse", sparse.dense_to_sparse, 4)
EliminateCommonSubexpr = factory("EliminateCommonSubexpr", unused.eliminate_common_subexpr, 3)
EtaExpand = factory("EtaExpand", closures.eta_expand, 1)
FakeQuantizationToInteger = factory("FakeQuantizationToInteger", fake_quantization_to_integer, required=("InferType", "DivToMul"))
FastMath = factory("FastMath", operators.fast_math, 4)
FlattenAtrousConv = factory("FlattenAtrousConv", padding.flatten_atrous_conv)
FlexibleShapeDispatch = factory("FlexibleShapeDispatch", basic.flexible_shape_dispatch)
FoldConstant = factory("FoldConstant", fold_constant, 2)
InferType = factory("InferType", infer_module)
Inline = factory("Inline", unused.inline, 1)
LambdaLift = factory("LambdaLift", closures.lambda_lift, 1)
LazyGradientInit = factory("LazyGradientInit", lazy_gradient_init, 2)
Legalize = factory("Legalize", basic.legalize, 1)
ManifestLifetimes = factory("ManifestLifetimes", manifest_lifetimes)
PlanDevices = factory("PlanDevices", plan_devices.plan_devices)
PartialEvaluate = factory("PartialEvaluate", partial_evaluate, 1)
UnCPS = factory("UnCPS", cps.un_cps_pass, 1)
RemoveUnusedFunctions = factory("RemoveUnusedFunctions", unused.remove_unused_functions, 1)
SplitArgs = factory("SplitArgs", split_args, 1)
ToANormalForm = factory("ToANormalForm", normal_forms.to_a_normal_form, 1)
ToCPS = factory("ToCPS", cps.to_cps_pass, 1)
ToBasicBlockNormalForm = factory("ToBasicBlockNormalForm", normal_forms.to_basic_block_normal_form, 1)
ToGraphNormalForm = factory("ToGraphNormalForm", normal_forms.to_graph_normal_form, 1)


def InferTypeLocal(expr: Expr) -> Type:
    """The type of an expression, which is noted in it and the expressions in it. Raises TypeInferenceError."""
    return infer_expr(expr).checked_type


def FoldConstantExpr(expr: Expr, mod: RelayModule | None = None) -> Expr:
    """Evaluates the parts of an expression that depend on constants alone."""
    return folded(expr)


def ToANormalFormExpr(expr: Expr) -> Expr:
    """An expression in A-normal form."""
    return normal_forms.to_a_normal_form(RelayModule.from_expr(expr))["main"].body


def gradient(expr: Expr, mod: RelayModule | None = None, mode: str = "higher_order") -> Function:
    """A function of the same parameters that gives the result and a tuple of the gradients by these.

    Functions as values, references and data types must be gone where the program is evaluated as far as it is known (PartialEvaluate).

    Args:
      expr: a function on tensors, or the name of one of `mod`.
      mode: one of Relay's modes; both give the same.

    Raises:
      RelayError: an operator without a gradient, or what is no graph of operators even then.
    """
    try:
        return gradient_of_graphs.gradient(expr, mod, mode)
    except RelayError:
        function = mod[expr] if isinstance(expr, GlobalVar) and mod is not None else expr
        if not isinstance(function, Function):
            raise
        module, name = RelayModule() if mod is None else mod.shallow_copy(), "function_with_gradient"
        module[name] = function
        module = PartialEvaluate()(InferType()(RemoveUnusedFunctions([name])(module)))
        # Values written to references have been read.
        left = DeadCodeElimination(ignore_impurity=True)(InferType()(module))[name]
        return gradient_of_graphs.gradient(left, mod, mode)


# ---- passes on the dialect -------------------------------------------------------------------------------------------------------------


class DialectPass(Pass):
    """A pass on the relay dialect, on the functions of a program of the language that have a form in it.

    They are lowered, and raised afterwards.

    Args:
      name: of the pass.
      keeps: whether composed operators stay as they are, and functions that the pass does not change; it does not look into the operators.

    Raises:
      RelayError: the pass gives operations that the language has not, or the program is invalid.
    """

    def __init__(self, name: str, keeps: bool = False) -> None:
        self._pass, self._keeps = find_pass(name), keeps
        self.info: PassInfo = self._pass.info

    def transform(self, mod: RelayModule, ctx: Any) -> RelayModule:
        typed = infer_module(mod)
        found = with_kept(typed, self._changed) if self._keeps else self._changed(typed)
        for var, function in typed.functions.items():
            if "Compiler" in function.attrs:  # another code generator's: the pass is not for it
                found[var] = function
        return infer_module(found)

    def _changed(self, typed: RelayModule) -> RelayModule:
        """A module after the pass.

        Functions that have no form in the dialect stay as they are, and those that a pass which keeps operators does not change.
        """
        try:
            lowered = lower(typed)
        except NeedsControl:
            part = _on_tensors(typed)
            if not part.functions:
                return typed
            lowered = lower(part)
        before = _texts(lowered, self._keeps)
        changed = self._pass(lowered)
        after, found = _texts(changed, self._keeps), raised(changed, typed)
        for var, function in typed.functions.items():
            name = var.name_hint
            same = self._keeps and before.get(name) == after.get(name) and not has_other_forms(function)
            if same or name not in before:
                found[var] = function
        return found


def _on_tensors(mod: RelayModule) -> RelayModule:
    """The functions that have a form in the dialect, with all that they call."""

    def has_form(name: str) -> bool:
        try:
            lower(unused.remove_unused_functions(mod, [name]))
        except NeedsControl:
            return False
        return True

    return unused.remove_unused_functions(mod, [var.name_hint for var in mod.functions if has_form(var.name_hint)])


def _texts(mod: IRModule, printed: bool) -> dict[str, str]:
    """The functions of a program of the dialect by name, as text; the texts are empty if nobody compares them."""
    with mod.context:
        return {symbol_name(function): str(function) if printed else "" for function in mod.module.body.operations}


def _of_dialect(name: str, keeps: bool = False) -> Callable[[], Pass]:
    """Creates a constructor of a pass of the dialect."""

    def make() -> Pass:
        return DialectPass(name, keeps)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"The pass {name} of the dialect."
    return make


ForwardFoldScaleAxis = _of_dialect("ForwardFoldScaleAxis", keeps=True)
BackwardFoldScaleAxis = _of_dialect("BackwardFoldScaleAxis", keeps=True)
SimplifyInference = _of_dialect("SimplifyInference")


def optimize(mod: RelayModule | Expr, target: Any = None, params: Any = None) -> tuple[RelayModule, dict[str, Any]]:
    """A program after the passes on operators that the PassContext enables, with constants in the place of parameters.

    Args:
      params: arrays that take the place of parameters of main, by name. All of them do: the second result is empty.

    Raises:
      RelayError: the program is not a right one.
    """
    passes = (SimplifyInference, FoldConstant, SimplifyExpr, EliminateCommonSubexpr, FoldScaleAxis, FoldConstant)
    return Sequential([*(make() for make in passes), FastMath()], name="optimize")(as_module(mod, params)), {}


def FuseOps(fuse_opt_level: int = -1) -> Pass:
    """Groups operators into functions with the attribute Primitive, each of which becomes one kernel.

    Args:
      fuse_opt_level: the PassContext level that determines the rules in use; negative for the level of the current context.
    """
    return DialectPass("FuseOps") if fuse_opt_level < 0 else With(DialectPass("FuseOps"), opt_level=fuse_opt_level)


def CombineParallelConv2D(min_num_branches: int = 3) -> Pass:
    """Convolutions of one tensor, with equal windows, become one and slices of it, as what follows all of them."""
    return _combining("CombineParallelConv2D", min_num_branches)


def CombineParallelDense(min_num_branches: int = 3, to_batch: bool = False) -> Pass:
    """Products of one tensor with several matrices become one and slices of it, as what follows all of them.

    Args:
      to_batch: Relay stacks the matrices where it is set. Here they are always side by side: the tensor is not copied.
    """
    return _combining("CombineParallelDense", min_num_branches)


def CombineParallelBatchMatmul(min_num_branches: int = 3) -> Pass:
    """Combines products of one batch of matrices with several others into one product and slices of it."""
    return _combining("CombineParallelBatchMatmul", min_num_branches)


def _combining(name: str, branches: int) -> Pass:
    options = {"relay.CombineParallel.min_branches": branches, "relay.CombineParallel.variables": True}
    return With(DialectPass(name, keeps=True), config=options)


def SimplifyExpr() -> Pass:
    """Identities of arithmetic and of data movement."""
    own = ModulePass(lambda mod, ctx: simplify(mod), PassInfo("SimplifyComposed"))
    return Chain([own, DialectPass("SimplifyExpr", keeps=True)])


def FoldScaleAxis() -> Pass:
    """Factors per channel go into the weights around them, which are constants afterwards."""
    return Chain([DialectPass("FoldScaleAxis", keeps=True), FoldConstant()])


def FoldExplicitPadding() -> Pass:
    """Padding becomes part of the convolutions and poolings that read it, of quantized convolutions, too."""
    quantized = ModulePass(lambda mod, ctx: padding.fold_padding_of_quantized(mod), PassInfo("FoldPaddingOfQuantized"))
    return Chain([DialectPass("FoldExplicitPadding", keeps=True), quantized])


class Chain(Pass):
    """Several passes as one, whatever the levels of these: it has the name and level of the one on the dialect."""

    def __init__(self, passes: Sequence[Pass]) -> None:
        self._passes = passes
        self.info = next(each.info for each in passes if isinstance(each, DialectPass))

    def transform(self, mod: RelayModule, ctx: PassContext) -> RelayModule:
        for each in self._passes:
            mod = each.transform(mod, ctx)
        return mod


class With(Pass):
    """A pass that runs with other settings than those of the current PassContext; its config gains entries."""

    def __init__(self, inner: Pass, config: dict[str, Any] | None = None, **settings: Any) -> None:
        self._inner, self._config, self._settings, self.info = inner, config or {}, settings, inner.info

    def transform(self, mod: RelayModule, ctx: PassContext) -> RelayModule:
        with PassContext(**{**ctx.settings, **self._settings, "config": {**ctx.settings.get("config", {}), **self._config}}):
            return self._inner.transform(mod, PassContext.current())


def __getattr__(name: str) -> Any:
    if name[:1].isupper():
        raise RelayError(f"pass {name} of Relay is not supported yet")
    raise AttributeError(name)
