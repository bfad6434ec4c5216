"""Python functions in TVMScript's form -> functions of blocks and loops."""

import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, overload

from relayc.dialects.discardable import DTYPE
from relayc.dialects.mlir import ir, make_context
from relayc.dialects.relay.errors import RelayError, check
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.types import signless_dtype
from relayc.dialects.tir.names import Kind
from relayc.pipelines.emission.index import Index
from relayc.pipelines.te.rules.scalar import te_element
from relayc.pipelines.tir.script import signature
from relayc.pipelines.tir.script.buffers import Buffer
from relayc.pipelines.tir.script.building import BlockFrame, Building, Less, building
from relayc.pipelines.tir.script.evaluation import BINARY, BUILTINS, ScriptExpressions
from relayc.pipelines.tir.script.source import Source, is_text, kind_of
from relayc.pipelines.tir.script.specs import Allocation, Axis, BlockSpec, Init, Loops, MatchedBuffer, Symbol
from relayc.pipelines.tir.script.values import Expr, Flag, IndexExpr
from relayc.pipelines.tir.tree.buffers import make_buffer
from relayc.pipelines.tir.tree.structure import Nest
from relayc.symbolic import Dim, symbol


@overload
def prim_func(function: Callable[..., Any], *, name: str | None = None, private: bool = False, accumulates: bool = False) -> IRModule: ...
@overload
def prim_func(*, name: str | None = None, private: bool = False, accumulates: bool = False) -> Callable[[Callable[..., Any]], IRModule]: ...
def prim_func(
    function: Callable[..., Any] | None = None, *, name: str | None = None, private: bool = False, accumulates: bool = False
) -> Any:
    """Reads a Python function in TVMScript's form (see `relayc.tir.T`): a module with one function of blocks and loops.

    The function is not run. Names are resolved in its enclosing scopes: numbers, sizes and functions of expressions may be defined there.
    Buffers that it writes are its results, and must follow the buffers that it reads.

    Args:
      name: of the function, if it differs from the Python function's.
      private: ignored, for compatibility with TVM.
      accumulates: whether results may be read before they are written, as in an implementation of a tensor intrinsic that accumulates. Such
        a function cannot be a kernel.

    Raises ScriptError with the line for unsupported code.
    """
    around = sys._getframe(1).f_locals
    if function is None:
        return lambda given: _of_function(given, name, around, accumulates)
    return _of_function(function, name, around, accumulates)


def _of_function(function: Callable[..., Any], name: str | None, around: Mapping[str, Any], accumulates: bool) -> IRModule:
    source = Source.of_function(function)
    closure = inspect.getclosurevars(function).nonlocals
    environment = {**getattr(function, "__globals__", {}), **around, **closure}
    (node, *_) = source.functions()
    return _module(source, [(node, name or node.name)], environment, accumulates)


def from_source(text: str, extra_vars: Mapping[str, Any] | None = None, file: str = "<script>") -> IRModule:
    """Reads the text of one or several functions, as `script` prints them; `T` is predefined.

    Args:
      extra_vars: further names.
      file: the name of the text in errors.

    Raises ScriptError with the line for unsupported code.
    """
    from relayc.pipelines.tir.script import language

    source = Source(text, file)
    environment = {"T": language, **(extra_vars or {})}
    evaluate = ScriptExpressions(source, lambda name: environment[name] if name in environment else BUILTINS[name])
    found = []
    for node in source.functions():
        keywords = [k for d in node.decorator_list if isinstance(d, ast.Call) for k in d.keywords if k.arg == "name"]
        found.append((node, evaluate(keywords[0].value) if keywords else node.name))
    return _module(source, found, environment)


def _module(
    source: Source, functions: list[tuple[ast.FunctionDef, str]], environment: Mapping[str, Any], accumulates: bool = False
) -> IRModule:
    with make_context(), ir.Location.unknown():
        mod = IRModule(ir.Module.create())
        with ir.InsertionPoint(mod.module.body):
            for node, name in functions:
                _Reader(source, environment).read(node, name, accumulates)
        mod.verify()
    return mod


class _Reader(ast.NodeVisitor):
    """Reads one function: visits its statements."""

    def __init__(self, source: Source, environment: Mapping[str, Any]) -> None:
        self.source = source
        self.environment = environment
        self.scopes: list[dict[str, Any]] = [{}]
        self.evaluate = ScriptExpressions(source, self._lookup)
        self.building: Building

    def read(self, node: ast.FunctionDef, name: str, accumulates: bool) -> None:
        """Builds the function at the ambient insertion point."""
        described, statements = self._signature(node)
        with self.source.at(node):
            function = signature.make_function(name, described)
        nest = Nest(function)
        for argument, value in zip(described.buffers, function.entry_block.arguments, strict=False):
            self.scopes[0][argument.variable] = Buffer(value, argument.shape, argument.dtype, argument.name)
        with nest.building(), ir.InsertionPoint.at_block_terminator(function.entry_block), building(nest) as state:
            self.building = self.evaluate.building = state
            self._statements(statements)
        with self.source.at(node):
            signature.mark_outputs(Nest(function), accumulates)

    # ---- names

    def _lookup(self, name: str) -> Any:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        found = self.environment[name] if name in self.environment else BUILTINS[name]
        return IndexExpr(Index(found)) if isinstance(found, Dim) else found

    def _bind(self, name: str, value: Any) -> None:
        """Binds a name to a value, unless an enclosing loop or block has bound it."""
        if any(name in scope for scope in self.scopes[:-1]):
            raise RelayError(f"{name}: expected a name that is assigned in one place, found it assigned around here too (a buffer changes)")
        self.scopes[-1][name] = value

    @contextmanager
    def _scope(self) -> Iterator[dict[str, Any]]:
        self.scopes.append({})
        try:
            yield self.scopes[-1]
        finally:
            self.scopes.pop()

    # ---- the signature

    def _signature(self, node: ast.FunctionDef) -> tuple[signature.Signature, list[ast.stmt]]:
        """The arguments of the function, and the statements after the ones that describe arguments."""
        found = signature.Signature()
        given = node.args
        if given.vararg or given.kwarg or given.kwonlyargs or given.defaults:
            raise self.source.error(node, f"{node.name}: expected plain arguments, found others")
        for argument in (*given.posonlyargs, *given.args):
            with self.source.at(argument):
                check(argument.annotation is not None, argument.arg, "an annotation such as T.Buffer((128,), 'float32')", "none")
                assert argument.annotation is not None
                said = self.evaluate(self._annotation(argument.annotation))
                self.scopes[0][argument.arg] = found.add_argument(argument.arg, said)
        self._add_symbols(found)
        statements = list(node.body)
        while statements and (is_text(statements[0]) or _is_attribute(statements[0]) or _says_signature(statements[0])):
            self._describe(statements.pop(0), found)
        return found, statements

    def _annotation(self, node: ast.expr) -> ast.expr:
        """Parses an annotation written as a text."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            made = ast.parse(node.value, mode="eval").body
            for part in ast.walk(made):
                part.lineno = node.lineno  # type: ignore[attr-defined] # positions within the text would be wrong
            return made
        return node

    def _describe(self, node: ast.stmt, found: signature.Signature) -> None:
        if not isinstance(node, ast.Assign):
            return
        with self.source.at(node):
            said = self.evaluate(node.value)
            target = node.targets[0]
            check(len(node.targets) == 1 and isinstance(target, ast.Name), "assignment", "one name", ast.unparse(target))
            assert isinstance(target, ast.Name)
            if isinstance(said, Symbol):
                found.symbols.add(said.name or target.id)
                self.scopes[0][target.id] = IndexExpr(Index(symbol(said.name or target.id)))
            else:
                assert isinstance(said, MatchedBuffer)
                found.match(said, target.id)
                self._add_symbols(found)

    def _add_symbols(self, found: signature.Signature) -> None:
        for name in found.shape_symbols():
            self.scopes[0].setdefault(name, IndexExpr(Index(symbol(name))))

    # ---- statements

    def _statements(self, nodes: list[ast.stmt]) -> None:
        for node in nodes:
            with self.source.at(node):
                try:
                    self.visit(node)
                except KeyError as error:  # a size that no argument determines
                    known = ", ".join(map(str, self.building.nest.sizes.values())) or "none"
                    raise RelayError(f"expected sizes over the symbols of the arguments, {known}, found {error.args[0]}") from None

    def generic_visit(self, node: ast.AST) -> None:
        raise self.source.error(node, f"expected a statement of a script, found {kind_of(node)}")

    def visit_Pass(self, node: ast.Pass) -> None:
        pass

    def visit_Expr(self, node: ast.Expr) -> None:
        if is_text(node):
            return
        found = self.evaluate(node.value)
        check(found is None, "statement", "one that does something", f"a value that nothing uses: {found!r}")

    def visit_Assign(self, node: ast.Assign) -> None:
        check(len(node.targets) == 1, "assignment", "one target", len(node.targets))
        target = node.targets[0]
        if isinstance(target, ast.Subscript):
            self._store(target, lambda: self.evaluate(node.value))
        else:
            self._assign_to(target, self.evaluate(node.value))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        check(node.value is not None and isinstance(node.target, ast.Name), "assignment", "a name and its value", ast.unparse(node))
        assert node.value is not None
        dtype = self.evaluate(node.annotation)
        self._assign_to(node.target, dtype(self.evaluate(node.value)))

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        operation = BINARY.get(type(node.op))
        check(operation is not None, "assignment", "an operator of a script", type(node.op).__name__)
        assert operation is not None
        if isinstance(node.target, ast.Subscript):
            target = node.target
            self._store(target, lambda: operation(self.evaluate(ast.copy_location(_read(target), target)), self.evaluate(node.value)))
            return
        check(isinstance(node.target, ast.Name), "assignment", "a name or an element", ast.unparse(node.target))
        assert isinstance(node.target, ast.Name)
        self._bind(node.target.id, operation(self._lookup(node.target.id), self.evaluate(node.value)))

    def _assign_to(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            check(isinstance(value, (tuple, list)), "assignment", f"{len(target.elts)} values", repr(value))
            if len(value) != len(target.elts):
                raise RelayError(f"assignment: expected {len(target.elts)} values, found {len(value)}")
            for part, element in zip(target.elts, value, strict=True):
                self._assign_to(part, element)
            return
        check(isinstance(target, ast.Name), "assignment", "a name or an element of a buffer", ast.unparse(target))
        assert isinstance(target, ast.Name)
        if isinstance(value, tuple) and len(value) == 1 and isinstance(value[0], Axis):
            value = value[0]  # vi = T.axis.remap("S", [i]), as TVM prints it
        self._bind(target.id, self._made(target.id, value))

    def _made(self, name: str, value: Any) -> Any:
        """The value bound to a name in an assignment."""
        if isinstance(value, Axis):
            return IndexExpr(Index.of(self.building.add_axis(value.kind, value.extent, value.point, name)))
        if isinstance(value, Allocation):
            return self._allocate(name, value)
        if isinstance(value, (Symbol, MatchedBuffer)):
            raise RelayError(f"{name}: expected what is said of arguments at the start of the function, found it behind other statements")
        if isinstance(value, (Loops, BlockSpec, Init)):
            raise RelayError(f"{name}: expected a value, found a loop or a block (for, with)")
        block = self.building.block
        if isinstance(value, Flag) and block is not None and block.region:
            found = value.emit()  # emitted once instead of at each use
            return Flag(lambda: found, value.less)
        return value

    def _allocate(self, name: str, said: Allocation) -> Buffer:
        outside = not self.building.visible and self.building.block is None
        check(outside, f"T.alloc_buffer {name}", "it outside of loops and blocks (it shrinks to what is alive at once)", "it inside of one")
        chosen = said.name or name
        taken = self.building.nest.buffers()
        check(chosen not in taken, f"T.alloc_buffer {name}", "a name that no other buffer has", chosen)
        value = self.building.nest.allocations[chosen] = make_buffer(chosen, said.shape, te_element(said.dtype), said.scope)
        if signless_dtype(said.dtype) != said.dtype:
            DTYPE.put(value.owner, said.dtype)
        return Buffer(value, said.shape, said.dtype, chosen)

    def _store(self, target: ast.Subscript, value: Callable[[], Any]) -> None:
        buffer = self.evaluate(target.value)
        check(isinstance(buffer, Buffer), ast.unparse(target.value), "a buffer", repr(buffer))
        state = self.building
        if state.block is not None:
            state.in_block(f"a store to {buffer.name}")
            state.outside_of_loops(f"a store to {buffer.name}")
            self._store_here(buffer, target, value)
            return
        with state.implicit_block(buffer.name):
            self._store_here(buffer, target, value)

    def _store_here(self, buffer: Buffer, target: ast.Subscript, value: Callable[[], Any]) -> None:
        made = value()
        with self.source.at(target):
            buffer.store(self.evaluate(target.slice), made)

    def visit_For(self, node: ast.For) -> None:
        check(not node.orelse, "for", "no else", "one")
        said = self.evaluate(node.iter)
        if isinstance(said, range):
            check(said.step == 1, "range", "steps of 1", said.step)
            said = Loops(((said.start, max(0, said.stop - said.start)),), Kind.SERIAL, {})
        elif isinstance(said, _Range):
            said = said.loops()
        check(
            isinstance(said, Loops),
            "for",
            "loops (range, T.serial, T.parallel, T.vectorized, T.unroll, T.thread_binding, T.grid)",
            repr(said),
        )
        targets = node.target.elts if isinstance(node.target, (ast.Tuple, ast.List)) else [node.target]
        check(len(targets) == len(said.ranges), "for", f"{len(said.ranges)} names of loops", len(targets))
        with ExitStack() as stack, self._scope() as scope:
            for target, (start, extent) in zip(targets, said.ranges, strict=True):
                check(isinstance(target, ast.Name), "for", "names of loops", ast.unparse(target))
                assert isinstance(target, ast.Name)
                loop = stack.enter_context(self.building.loop(said.name or target.id, extent, said.kind, dict(said.annotations)))
                scope[target.id] = IndexExpr(Index.of(loop.var) + start)
            self._statements(node.body)

    def visit_If(self, node: ast.If) -> None:
        condition = self.evaluate(node.test)
        if not isinstance(condition, Expr):
            self._statements(node.body if condition else node.orelse)
            return
        state = self.building
        less = [(state.resolved(a), state.resolved(b)) for a, b in _comparisons(node, condition)]
        if state.block is not None:
            inside = "around a block, or around all statements of one" if not state.block.loops else "around the block"
            raise RelayError(
                f"if: expected it {inside} (T.if_then_else chooses values), found it among the statements of {state.block.name}"
            )
        before = state.conditions
        state.conditions = [*before, *less]
        with self._scope():
            self._statements(node.body)
        state.conditions = before

    def visit_With(self, node: ast.With) -> None:
        check(
            len(node.items) == 1 and node.items[0].optional_vars is None, "with", "one T.block or T.init", ast.unparse(node).split(":")[0]
        )
        said = self.evaluate(node.items[0].context_expr)
        if isinstance(said, BlockSpec):
            if said.name == "root" and not self.building.visible and self.building.block is None:
                self._statements(node.body)  # TVM's outermost block
            else:
                self._block(node, said)
            return
        raise RelayError(f"with: expected T.block, or T.init at the start of the statements of a block, found {said!r}")

    # ---- blocks

    def _block(self, node: ast.With, said: BlockSpec) -> None:
        state = self.building
        if state.block is not None:
            state.in_block(f"T.block({said.name!r})")
        with state.open_block(said.name) as frame, self._scope():
            rest = list(node.body)
            while rest and self._is_header(rest[0]):
                self._statements([rest.pop(0)])
            rest = self._guarded(rest, frame)
            if rest and isinstance(rest[0], ast.With) and self._is_init(rest[0]):
                with state.region(frame, "init"), self._scope():
                    self._statements(rest.pop(0).body)  # type: ignore[attr-defined] # a with
            with state.region(frame, "body"):
                self._statements(rest)

    def _is_header(self, node: ast.stmt) -> bool:
        """Whether a statement belongs to the header of a block: axes, guards, regions or annotations."""
        value = node.value if isinstance(node, (ast.Assign, ast.Expr)) else None
        if not isinstance(value, ast.Call):
            return is_text(node)
        path = ast.unparse(value.func).split(".")
        return "axis" in path[:-1] or path[-1] in ("where", "reads", "writes", "block_attr")

    def _is_init(self, node: ast.With) -> bool:
        with self.source.at(node):
            return len(node.items) == 1 and isinstance(self.evaluate(node.items[0].context_expr), Init)

    def _guarded(self, nodes: list[ast.stmt], frame: BlockFrame) -> list[ast.stmt]:
        """The statements of a block, without an `if` around all of them."""
        node = nodes[0] if len(nodes) == 1 else None
        if not isinstance(node, ast.If):
            return nodes
        with self.source.at(node):
            condition = self.evaluate(node.test)
            if not isinstance(condition, Expr):
                return node.body if condition else node.orelse
            self.building.add_guards(_comparisons(node, condition))
            return node.body


def _comparisons(node: ast.If, condition: Expr) -> Less:
    """The comparisons of the condition of an `if`. Raises RelayError for a condition on values, and for an `else`."""
    check(not node.orelse, "if", "no else (T.if_then_else chooses values)", "one")
    if not isinstance(condition, Flag) or condition.less is None:
        wanted = "comparisons of indices, joined by and (T.if_then_else chooses values)"
        raise RelayError(f"if: expected {wanted}, found another condition")
    return condition.less


class _Range:
    """Python's range over symbolic sizes."""

    def __init__(self, *bounds: Any) -> None:
        check(1 <= len(bounds) <= 2, "range", "an end, or a start and an end", len(bounds))
        self.bounds = bounds

    def loops(self) -> Loops:
        """The loop of the range."""
        from relayc.pipelines.tir.script.language import serial

        return serial(*self.bounds)


def _range(*bounds: Any) -> Any:
    return _Range(*bounds) if any(isinstance(b, Expr) for b in bounds) else range(*bounds)


BUILTINS["range"] = _range


def _is_attribute(node: ast.stmt) -> bool:
    """Whether a statement is T.func_attr, which TVM prints before the descriptions of arguments."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and ast.unparse(node.value.func).split(".")[-1] == "func_attr"


def _says_signature(node: ast.stmt) -> bool:
    """Whether a statement describes an argument, or declares a size."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
        return False
    name = ast.unparse(node.value.func).split(".")[-1]
    return name in ("match_buffer", "var") or (name in ("int32", "int64") and not node.value.args and not node.value.keywords)


def _read(target: ast.Subscript) -> ast.Subscript:
    """The target of an assignment as an element to load."""
    return ast.Subscript(target.value, target.slice, ast.Load())
