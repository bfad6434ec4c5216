"""Partitions for code generators of others: composite functions, annotations of what a generator takes, regions of these, and functions.

Operators that a generator takes have `compiler_begin` around their arguments and `compiler_end` around their results. A region is what is
between these; merged regions become functions with the attribute Compiler.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from relayc.frontend.relay.analysis import Scope
from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.attrs import Attrs
from relayc.frontend.relay.ast.functor import ExprMutator, children, post_order, pre_order, rebuilt, replace_calls, with_parts
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.dataflow_pattern import DFPattern, partition
from relayc.frontend.relay.inference import infer_module
from relayc.frontend.relay.op.registered import attribute
from relayc.frontend.relay.passes.normal_forms import blocks_of
from relayc.frontend.relay.passes.operators import name_of

DEFAULT = "default"
"""The generator of expressions that no other accepts: relayc."""
BEGIN, END = "annotation.compiler_begin", "annotation.compiler_end"

# ---- composite functions -----------------------------------------------------------------------------------------------------------------


def merge_composite(mod: RelayModule, pattern_table: Iterable[Sequence[Any]]) -> RelayModule:
    """Makes what patterns match functions with the attribute Composite, the patterns in order.

    Args:
      pattern_table: of each pattern its name, the pattern, and a function that says of the last expression of a match whether to take it
        (may be left out).
    """
    typed = infer_module(mod)
    for name, pattern, *check in pattern_table:
        if not isinstance(pattern, DFPattern):
            raise TypeError(f"pattern {name}: expected a dataflow pattern, found {pattern!r}")
        holds: Callable[[e.Expr], bool] = check[0] if check and check[0] is not None else lambda expr: True
        typed = infer_module(typed.map_functions(lambda f, n=name, p=pattern, c=holds: _composite(f, n, p, c)))  # type: ignore[misc]
    return typed


def _composite(function: e.Function, name: str, pattern: DFPattern, check: Callable[[e.Expr], bool]) -> e.Expr:
    if "Compiler" in function.attrs:
        return function
    return function.replace(body=partition(pattern, function.body, {"Composite": name}, check))


# ---- annotations -------------------------------------------------------------------------------------------------------------------------


def _annotation(name: str, expr: e.Expr, compiler: str) -> e.Call:
    return e.Call(e.Op.get(name), [expr], Attrs({"compiler": compiler}, f"relay.attrs.{name}"))


def _compiler(expr: Any) -> str:
    return str(expr.attrs["compiler"])


def annotate_target(mod: RelayModule, targets: str | Sequence[str], include_non_call_ops: bool = True) -> RelayModule:
    """Annotates expressions that generators accept: operators whose attribute `target.NAME`, a function of the call, is true, and composite
    functions whose names begin with the generator's name.

    Args:
      targets: names of the generators; the first one that accepts an operator gets it.
      include_non_call_ops: whether tuples and their fields are annotated like their operands.
    """
    names = [targets] if isinstance(targets, str) else list(targets)
    return infer_module(infer_module(mod).map_functions(lambda f: _Annotate(names, include_non_call_ops).function(f)))


class _Annotate(ExprMutator):
    def __init__(self, targets: Sequence[str], takes_structure: bool) -> None:
        super().__init__()
        self._targets, self._takes_structure = targets, takes_structure
        self._target_of: dict[e.Expr, str] = {}

    def function(self, function: e.Function) -> e.Expr:
        return function if "Compiler" in function.attrs else function.replace(body=self._ended(self.visit(function.body)))

    def _ended(self, expr: e.Expr) -> e.Expr:
        """The result of what a generator takes, marked as one."""
        target = self._target_of.get(expr)
        if target is None:
            return expr
        found = _annotation(END, expr, target)
        self._target_of[found] = target
        return found

    def _begun(self, args: Sequence[e.Expr], target: str | None = None) -> tuple[str | None, list[e.Expr]]:
        """Arguments as arguments of a region, and the generator of the region: by default the common generator of all arguments."""
        ends, targets = [], []
        for arg in args:
            if name_of(arg) == BEGIN:  # of annotations that are there already
                ends.append(arg.args[0])  # type: ignore[attr-defined]
                targets.append(_compiler(ends[-1]) if name_of(ends[-1]) == END else DEFAULT)
            elif arg in self._target_of:
                ends.append(_annotation(END, arg, self._target_of[arg]))
                targets.append(self._target_of[arg])
            else:
                ends.append(arg)
                targets.append(DEFAULT)
        if not args:
            return None, []
        chosen = target or (targets[0] if len(set(targets)) == 1 else DEFAULT)
        return chosen, [_annotation(BEGIN, end, chosen) for end in ends]

    def visit_call(self, call: e.Call) -> e.Expr:
        if name_of(call) == END:
            inner = self.visit(call.args[0])
            self._target_of.setdefault(inner, _compiler(call))
            return inner
        if name_of(call) == BEGIN:
            inner = self.visit(call.args[0])
            return _annotation(BEGIN, self._ended(inner), _compiler(call))
        if not isinstance(call.op, (e.Op, e.Function)) and not (isinstance(call.op, e.Var) and self._takes_structure):
            return self._around(call)
        args = [self.visit(arg) for arg in call.args]
        given = [_compiler(arg) for arg in args if name_of(arg) == BEGIN and _compiler(arg) != DEFAULT]
        target, begun = self._begun(args, (given or [self._taken_by(call)])[0])
        op = call.op if isinstance(call.op, e.Function) else self.visit(call.op)
        new = call.replace(op=op, args=tuple(begun))
        if target is not None:
            self._target_of[new] = target
        return new

    def _taken_by(self, call: e.Call) -> str:
        for target in self._targets:
            if isinstance(call.op, e.Op):
                takes = attribute(call.op.name, f"target.{target}")
                if takes is not None and takes(call):
                    return target
            elif isinstance(call.op, e.Function) and str(call.op.attrs.get("Composite", "")).startswith(f"{target}."):
                return target
        return DEFAULT

    def _structure(self, expr: e.Expr) -> e.Expr:
        parts = [self.visit(part) for part in children(expr)]
        if not self._takes_structure:
            return rebuilt(expr, iter([self._ended(part) for part in parts]))
        target, begun = self._begun(parts)
        new = rebuilt(expr, iter(begun))
        if target is not None:
            self._target_of[new] = target
        return new

    visit_tuple = _structure
    visit_tuple_getitem = _structure
    visit_ref_create = _structure
    visit_ref_read = _structure
    visit_ref_write = _structure

    def _around(self, expr: e.Expr) -> e.Expr:
        return rebuilt(expr, iter([self._ended(self.visit(part)) for part in children(expr)]))

    visit_if = _around
    visit_match = _around

    def visit_let(self, let: e.Let) -> e.Expr:
        value, body = (self._ended(self.visit(part)) for part in (let.value, let.body))
        return let.replace(value=value, body=body)

    def visit_function(self, function: e.Function) -> e.Expr:
        return function if "Composite" in function.attrs else function.replace(body=self._ended(self.visit(function.body)))


# ---- regions -----------------------------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Region:
    """What one generator is to compute.

    Attributes:
      target: the generator.
      nodes: its expressions with the annotations around them, in the order of evaluation.
    """

    target: str
    nodes: dict[e.Expr, None] = field(default_factory=dict)

    @property
    def args(self) -> list[e.Expr]:
        """The annotations around its inputs."""
        return [node for node in self.nodes if name_of(node) == BEGIN]

    @property
    def rets(self) -> list[e.Expr]:
        """The annotations around its outputs."""
        return [node for node in self.nodes if name_of(node) == END]


class AnnotatedRegionSet(list[Region]):
    """The regions of an annotated expression."""

    def __init__(self, expr: e.Expr, compiler_begin_op: Any = None, compiler_end_op: Any = None) -> None:
        of: dict[e.Expr, Region] = {}
        order = list(post_order(expr))
        for node in order:
            if name_of(node) == BEGIN:
                of[node] = Region(_compiler(node))
                of[node].nodes[node] = None
                continue
            if not isinstance(node, (e.Call, e.Tuple, e.TupleGetItem)):
                continue
            around = [of[part] for part in children(node) if part in of and name_of(part) != END]
            if not around:
                if name_of(node) != END:
                    continue
                around = [Region(_compiler(node))]
            first = around[0]
            for other in around[1:]:
                if other is not first:
                    first.nodes.update(other.nodes)
                    of.update(dict.fromkeys(other.nodes, first))
            first.nodes[node] = None
            of[node] = first
        super().__init__(dict.fromkeys(of.values()))
        self._of = of
        bound = {node.var: node.value for node in order if isinstance(node, e.Let)}
        self._behind: dict[e.Expr, dict[e.Expr, None]] = {}  # of what is in no region: expressions of regions that it is computed from
        for node in order:
            if node not in of:
                parts = [bound[node]] if node in bound else children(node)
                self._behind[node] = {n: None for part in parts for n in ({part: None} if part in of else self._behind.get(part, ()))}

    def get_region(self, expr: e.Expr) -> Region | None:
        """The region of an expression; None if it is in none."""
        return self._of.get(expr)

    def merge(self, into: Region, other: Region) -> None:
        """Makes two regions one."""
        order = list(self._of)
        into.nodes.update(other.nodes)
        into.nodes = dict.fromkeys(node for node in order if node in into.nodes)
        self._of.update(dict.fromkeys(other.nodes, into))
        self.remove(other)

    def reads(self, region: Region) -> list[Region]:
        """The regions whose results a region reads."""
        found = dict.fromkeys(self._of[begin.args[0]] for begin in region.args if begin.args[0] in self._of)  # type: ignore[attr-defined]
        return [other for other in found if other is not region]

    def reads_through_others(self, region: Region) -> list[Region]:
        """The regions that a region reads through expressions of no region, such as branches."""
        sources = [begin.args[0] for begin in region.args]  # type: ignore[attr-defined]
        return list(dict.fromkeys(self._of[node] for source in sources for node in self._behind.get(source, ())))


def merge_compiler_regions(mod: RelayModule) -> RelayModule:
    """Merges connected regions of one generator in the same branch, if no region of another generator is between them."""
    return infer_module(mod.map_functions(_merged))


def _merged(function: e.Function) -> e.Expr:
    if "Compiler" in function.attrs:
        return function
    regions, blocks = AnnotatedRegionSet(function.body), blocks_of(function)

    def block(region: Region) -> Scope:
        return blocks[next(node for node in region.nodes if name_of(node) != BEGIN)]

    position = {node: i for i, node in enumerate(post_order(function.body))}
    for region in sorted(regions, key=lambda found: max(map(position.__getitem__, found.nodes))):  # producers first
        if region in regions:
            for parent in regions.reads(region):
                if parent.target == region.target and block(parent) is block(region) and not _is_read_around(regions, region, parent):
                    regions.merge(parent, region)
                    region = parent

    def joined(node: e.Call, new: e.Call) -> e.Expr | None:
        end = node.args[0] if name_of(node) == BEGIN else None
        is_inside = end is not None and name_of(end) == END and regions.get_region(end) is regions.get_region(node)
        return new.args[0].args[0] if is_inside else None  # type: ignore[attr-defined] # of the annotation at the end

    return replace_calls(function, joined)


def _is_read_around(regions: AnnotatedRegionSet, region: Region, parent: Region) -> bool:
    """Whether a region reads another one indirectly."""
    between = [*(other for other in regions.reads(region) if other is not parent), *regions.reads_through_others(region)]
    return parent in pre_order(between, lambda each: [*regions.reads(each), *regions.reads_through_others(each)])


# ---- functions ---------------------------------------------------------------------------------------------------------------------------


def partition_graph(mod: RelayModule, mod_name: str = DEFAULT, bind_constants: bool = True) -> RelayModule:
    """Makes regions global functions with the attributes Compiler and global_symbol.

    Args:
      mod_name: in the names of the functions.
      bind_constants: whether constants that a region reads are in its function; else they are its arguments.
    """
    found = infer_module(mod).shallow_copy()
    old = list(found.functions)
    for var in old:
        function = found[var]
        if "Compiler" not in function.attrs:
            found[var] = _Partition(found, f"tvmgen_{mod_name}_{{}}_{var.name_hint}", bind_constants).run(function)
    for var in [var for var in found.functions if var not in old]:
        change = _OPTIMIZERS.get(str(found[var].attrs["Compiler"]))
        if change is not None:
            found[var] = change(infer_module(RelayModule({var: found[var]}, found.type_definitions)))[var.name_hint]
    return infer_module(found)


_OPTIMIZERS: dict[str, Callable[[RelayModule], RelayModule]] = {}


def register_partition_pass(compiler: str, change: Callable[[RelayModule], RelayModule] | None = None) -> Any:
    """Registers what `partition_graph` applies to each function that it makes for a generator: a pass, called with a module of the
    function alone. At once or as a decorator."""
    if change is None:
        return lambda function: register_partition_pass(compiler, function)
    _OPTIMIZERS[compiler] = change
    return change


class _Partition:
    """One function while its regions become functions."""

    def __init__(self, mod: RelayModule, name: str, bind_constants: bool) -> None:
        self._mod, self._name, self._binds = mod, name, bind_constants
        self._made: dict[e.Expr, e.Expr] = {}
        self._calls: dict[Region, dict[e.Expr, e.Expr]] = {}

    def run(self, function: e.Function) -> e.Expr:
        regions = AnnotatedRegionSet(function.body)
        inside = {node for region in regions if region.target != DEFAULT for node in region.nodes}
        for node in post_order(function):
            region = regions.get_region(node) if node in inside else None
            if region is not None:  # what is no result of a region is in its function
                if name_of(node) == END:
                    if region not in self._calls:
                        self._calls[region] = self._call(region)
                    self._made[node] = self._calls[region][node.args[0]]  # type: ignore[attr-defined]
            elif name_of(node) in (BEGIN, END):
                self._made[node] = self._made[node.args[0]]  # type: ignore[attr-defined]
            else:
                self._made[node] = with_parts(node, self._made)
        return self._made[function]

    def _call(self, region: Region) -> dict[e.Expr, e.Expr]:
        """The results of a region, as those of the call of its function."""
        number = len(self._calls)
        name = re.sub(r"\W", "_", f"{self._name.format(region.target)}_{number}")
        params: dict[e.Expr, e.Var] = {}
        values: dict[e.Expr, e.Expr] = {}
        for node in region.nodes:
            if name_of(node) == BEGIN:
                source = node.args[0]  # type: ignore[attr-defined]
                if self._binds and _is_constant(self._made[source]):
                    values[node] = self._made[source]
                    continue
                if source not in params:
                    params[source] = e.Var(f"{re.sub(r'[^0-9A-Za-z_]', '_', region.target)}_{number}_i{len(params)}", source.checked_type_)
                values[node] = params[source]
            elif name_of(node) != END:
                values[node] = rebuilt(node, iter([values.get(part, part) for part in children(node)]))
        outputs = list(dict.fromkeys(end.args[0] for end in region.rets))  # type: ignore[attr-defined]
        results: list[e.Expr] = []
        places: dict[e.Expr, list[int]] = {}
        for output in outputs:  # tuples are returned field by field
            value, type_ = values[output], output.checked_type
            count = len(results)
            results += [e.TupleGetItem(value, i) for i in range(len(type_.fields))] if isinstance(type_, t.TupleType) else [value]
            places[output] = list(range(count, len(results)))
        attrs = {"Primitive": 1, "Inline": 1, "Compiler": region.target, "global_symbol": name}
        var = e.GlobalVar(name)
        self._mod[var] = e.Function(list(params.values()), results[0] if len(results) == 1 else e.Tuple(results), None, None, attrs)
        call = e.Call(var, [self._made[source] for source in params])
        parts: list[e.Expr] = [call] if len(results) == 1 else [e.TupleGetItem(call, i) for i in range(len(results))]
        whole = {output: e.Tuple([parts[i] for i in found]) for output, found in places.items()}
        return {output: whole[output] if isinstance(output.checked_type, t.TupleType) else parts[places[output][0]] for output in outputs}


def _is_constant(expr: e.Expr) -> bool:
    return isinstance(expr, e.Constant) or (isinstance(expr, e.Tuple) and all(map(_is_constant, expr.fields)))


# ---- tables ------------------------------------------------------------------------------------------------------------------------------

_TABLES: dict[str, Callable[[], Sequence[Any]]] = {}


def register_pattern_table(compiler: str, table: Callable[[], Sequence[Any]] | None = None) -> Any:
    """Registers the table of patterns of a generator: a function that gives it, at once or as a decorator."""
    if table is None:
        return lambda function: register_pattern_table(compiler, function)
    _TABLES[compiler] = table
    return table


def get_pattern_table(compiler: str) -> Sequence[Any]:
    """The pattern table of a generator: for each pattern its name, the pattern and optionally a check. Empty if there is none."""
    return _TABLES.get(compiler, list)()
