"""InferType: runs the type relations through the program, so that shapes known at its inputs reach its outputs.

A size of an argument of which nothing is known (`?`) gets a symbol of its own: `x_0` for the first axis of the argument `x`. Where an
operator wants two such sizes to be equal, or one to be a number, they are: the program checks it where it begins.

Types reach across calls too: results of a call are those of its callee, with the call's sizes for the callee's symbols, and arguments of a
private function say what all its calls agree on. (Upstream has no pass that refines types: an operation infers them when it is built.)
"""

import re
from collections.abc import Iterable, Sequence

from relayc.dialects.callgraph import components, is_recursive
from relayc.dialects.discardable import NAME
from relayc.dialects.functions import is_public, refresh_signature, signature_of, symbol_name, value_attributes
from relayc.dialects.mlir import func, ir
from relayc.dialects.operations import find_operations
from relayc.dialects.relay.base import Op, RelayError
from relayc.dialects.relay.calls import bindings_of, cast_argument, cast_result, uncast
from relayc.dialects.relay.errors import Unequal
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.scopes import SymbolNames, is_cast, normalize_sizes, replace_symbols, symbols_of_value
from relayc.dialects.relay.structure import If, While
from relayc.dialects.relay.types import RelayType, TupleType, flat_sizes, relay_type, type_of
from relayc.dialects.relay.unify import Bindings, joined, map_sizes, match, same_structure, substitute_type, symbols_of_type
from relayc.pipelines.context.passes import PassContext, functions, module_pass
from relayc.pipelines.graph.inline import read_calls
from relayc.symbolic import Dim, Size, is_name, name_of, symbol, symbols_of

_MAX_ROUNDS = 100


def _is_known(type_: RelayType) -> bool:
    return None not in flat_sizes(type_)


def merged(inferred: RelayType, found: RelayType) -> RelayType:
    """The combination of two types, where `inferred.accepts(found)`."""
    sizes = iter(flat_sizes(inferred))

    def either(d: Size | None) -> Size | None:
        other = next(sizes)
        return other if d is None else d

    return map_sizes(found, either)


def _refine(value: ir.Value, inferred: RelayType, where: str) -> None:
    """Sets the type of a value to the combination of its own type and `inferred`.

    Raises RelayError if they contradict each other, Unequal if they differ in a size.
    """
    found = type_of(value)
    if inferred == found:
        return
    if not inferred.accepts(found):
        message = f"{where}: expected result type {inferred}, found {found}"
        for a, b in zip(flat_sizes(inferred), flat_sizes(found), strict=False):
            if a is not None and b is not None and a != b:
                raise Unequal(message, a, b)
        raise RelayError(message)
    type_ = merged(inferred, found)
    if type_ != found:
        value.set_type(type_.to_mlir())


class _Inference:
    """Types of a module's values."""

    def __init__(self, mod: IRModule) -> None:
        self.by_name = {symbol_name(f): f for f in functions(mod)}
        self.calls = {name: [c for c in read_calls(function) if c.callee.value in self.by_name] for name, function in self.by_name.items()}
        callees = {name: {c.callee.value for c in calls} for name, calls in self.calls.items()}
        order = components(callees)
        self.callers_first = [name for component in reversed(order) for name in component]
        self.component = {name: i for i, component in enumerate(order) for name in component}
        self.recursive = {name for component in order if is_recursive(component, callees) for name in component}
        self.module = mod
        self._names: SymbolNames | None = None
        self.flexible: set[str] = set()
        """Symbols that this pass created for unspecified sizes of arguments."""
        self.changed: bool
        self.partial: bool
        """Whether there is a branch, a loop or a call with sizes that are not known yet."""

    def fresh(self, name: str) -> Dim:
        """A new symbol."""
        if self._names is None:
            self._names = SymbolNames(self.module.module.operation)
        return self._names.free(name)

    # ---- the whole

    def run(self) -> None:
        """Infers all types, and puts what a callee's symbols are into calls. Raises RelayError."""
        for _ in range(_MAX_ROUNDS):
            self.changed = self.partial = False
            for name in self.callers_first:
                self._name_arguments(name)
                self._infer_function(self.by_name[name])
            for name in reversed(self.callers_first):
                self._infer_results(self.calls[name])
            if not self.changed and not (self.partial and self._name_a_result()):
                break
        for calls in self.calls.values():
            for call in calls:
                self._cast(call)
        for function in self.by_name.values():
            refresh_signature(function)

    def _set(self, value: ir.Value, type_: RelayType) -> None:
        if type_of(value) != type_:
            value.set_type(type_.to_mlir())
            self.changed = True

    # ---- arguments

    def _name_arguments(self, name: str) -> None:
        function = self.by_name[name]
        arguments = list(function.regions[0].blocks[0].arguments)
        if all(_is_known(type_of(a)) for a in arguments):
            return
        outside = [
            call
            for caller, calls in self.calls.items()
            if self.component[caller] != self.component[name]
            for call in calls
            if call.callee.value == name
        ]
        if is_public(function) or not outside:
            attributes = value_attributes(function)
            for i, (argument, attribute) in enumerate(zip(arguments, attributes, strict=True)):
                given = NAME.get(attribute, f"arg{i}")
                self._set(argument, self._named(type_of(argument), given))
            return
        operands = [[type_of(uncast(v)) for v in call.operation.operands] for call in outside]
        if all(_is_known(t) for types in operands for t in types):
            self._generalise(name, arguments, operands)

    def _named(self, type_: RelayType, name: str) -> RelayType:
        base = re.sub(r"\W", "_", name, flags=re.ASCII)
        axes = iter(range(len(flat_sizes(type_))))

        def named(d: Size | None) -> Size | None:
            axis = next(axes)
            if d is not None:
                return d
            new = self.fresh(f"{base}_{axis}" if is_name(f"{base}_{axis}") else f"d_{base}_{axis}")
            self.flexible.add(str(new))
            return new

        return map_sizes(type_, named)

    def _generalise(self, name: str, arguments: Sequence[ir.Value], calls: Sequence[Sequence[RelayType]]) -> None:
        """Says of the arguments of a private function what all calls agree on: a number, or one symbol for sizes that are equal in each."""
        made: dict[tuple[Size | None, ...], Size] = {}
        for i, argument in enumerate(arguments):
            given = iter(zip(*(flat_sizes(types[i]) for types in calls), strict=True))

            def general(d: Size | None) -> Size | None:
                sizes = next(given)  # noqa: B023 # used up before the next round
                if d is not None:
                    return d
                if isinstance(sizes[0], int) and len(set(sizes)) == 1 and name not in self.recursive:
                    return sizes[0]
                if sizes not in made:
                    made[sizes] = self.fresh(name_of(sizes[0]) or f"{name}_{len(made)}")
                return made[sizes]

            self._set(argument, map_sizes(type_of(argument), general))

    # ---- bodies

    def _infer_function(self, function: ir.Operation) -> None:
        block = function.regions[0].blocks[0]
        for _ in range(_MAX_ROUNDS):
            try:
                self._infer_block(block)
                break
            except Unequal as error:
                if not self._made_equal(function, error):
                    raise RelayError(str(error)) from None
        refresh_signature(function)

    def _made_equal(self, function: ir.Operation, error: Unequal) -> bool:
        """Whether one of two sizes that are to be equal is a symbol made for an argument: it is the other one from now on."""
        arguments = list(function.regions[0].blocks[0].arguments)
        known = frozenset().union(*map(symbols_of_value, arguments))
        for a, b in ((error.b, error.a), (error.a, error.b)):
            name = str(a)
            if isinstance(a, Dim) and name in self.flexible and name in known and symbols_of(b).issubset(known - {name}):
                if isinstance(b, int) and b < 0:
                    continue
                replace_symbols(function, {name: b})
                self.changed = True
                return True
        return False

    def _infer_block(self, block: ir.Block) -> None:
        for op in block.operations:
            operation = op.operation
            where = ""
            if isinstance(op, While):
                where = f"{operation.name} at {op.source()}"
                self._infer_carried(op, where)
            for region in operation.regions:
                for inner in region.blocks:
                    self._infer_block(inner)
            if isinstance(op, If):
                self._infer_branches(op)
            elif isinstance(op, Op):
                self._infer(op)
            elif operation.name == "builtin.unrealized_conversion_cast":
                made = TupleType(tuple(map(type_of, operation.operands)))
                _refine(operation.results[0], made, operation.name)

    def _infer(self, op: Op) -> None:
        where = f"{op.operation.name} at {op.source()}"
        try:
            inferred = op.inferred_types()
        except Unequal as e:
            raise Unequal(f"{where}: {e}", e.a, e.b) from None
        except RelayError as e:
            raise RelayError(f"{where}: {e}") from None
        for result, type_ in zip(op.operation.results, inferred, strict=True):
            _refine(result, type_, where)

    def _infer_branches(self, op: If) -> None:
        """A size that differs between the branches becomes a new symbol, if it is unspecified."""
        result = op.operation.results[0]
        found = type_of(result)
        if not _is_known(found):
            then, otherwise = (type_of(op.yielded(i)) for i in range(2))
            if same_structure(then, otherwise, found):
                inferred = joined(then, otherwise, lambda: self.fresh("branch"), "")
                result.set_type(merged(inferred, found).to_mlir())
        self._infer(op)
        self.partial |= not _is_known(type_of(result))

    def _infer_carried(self, op: While, where: str) -> None:
        """Sets the types of the arguments of a loop's regions: the common type of `init` and `step`, with new symbols where they differ."""
        arguments = [region.blocks[0].arguments[0] for region in op.operation.regions]
        init = type_of(op.operation.operands[0])
        carried = type_of(arguments[1])
        if not _is_known(carried) and carried.accepts(init) and _is_known(init):
            carried = self._carried(op, carried, init)
        elif not symbols_of_type(carried):
            _refine(arguments[1], init, where)
            carried = type_of(arguments[1])
        self.partial |= not _is_known(carried)
        for argument in arguments:
            _refine(argument, carried, where)

    def _carried(self, op: While, carried: RelayType, init: RelayType) -> RelayType:
        """`carried` with unspecified sizes taken from `init`, or new symbols for sizes that a step changes."""
        found = merged(init, carried)
        own: set[str] = set()
        for _ in range(_MAX_ROUNDS):
            following = self._step(op, found)
            if following is None:
                return found
            if not _is_known(following):
                # It contains a call whose result is not known yet.
                return carried
            try:
                match([found], [following], "", own)
                return found
            except RelayError:
                pass
            stated, sizes = iter(flat_sizes(carried)), iter(flat_sizes(following))
            made: dict[tuple[Size, Size], Dim] = {}

            def general(d: Size | None) -> Size | None:
                said, next_ = next(stated), next(sizes)  # noqa: B023 # used up before the next round
                if said is not None or d is None or next_ is None or d == next_:
                    return d
                key = (d, next_)
                if key not in made:  # noqa: B023
                    made[key] = self.fresh("carried")  # noqa: B023
                    own.add(str(made[key]))  # noqa: B023
                return made[key]  # noqa: B023

            before = found
            found = map_sizes(found, general)
            if found == before:
                return found
        return found

    def _step(self, op: While, carried: RelayType) -> RelayType | None:
        """The type that a step yields for `carried`; None if it differs in more than sizes, or the step is invalid."""
        copy = op.operation.clone()
        try:
            for region in copy.regions:
                region.blocks[0].arguments[0].set_type(carried.to_mlir())
            self._infer_block(copy.regions[1].blocks[0])
            following = type_of(copy.opview.yielded(1))
        except RelayError:
            return None
        finally:
            copy.erase()
        return following if same_structure(carried, following) else None

    # ---- calls

    def _infer_results(self, calls: Iterable[func.CallOp]) -> None:
        """Carries the types of callees to the results of their calls."""
        for call in calls:
            callee = self.by_name[call.callee.value]
            types = [relay_type(t) for t in signature_of(callee).results]
            bindings: Bindings = {}
            if any(map(symbols_of_type, types)):
                given = [type_of(uncast(v)) for v in call.operation.operands]
                if not all(map(_is_known, [*given, *(relay_type(t) for t in signature_of(callee).inputs)])):
                    self.partial |= not all(_is_known(type_of(result)) for result in call.operation.results)
                    continue
                bindings = bindings_of(call, callee)
            for result, type_ in zip(call.operation.results, types, strict=True):
                before = result.type
                if is_cast(result):
                    result.set_type(type_.to_mlir())
                else:
                    self._bind_results(call, type_, type_of(result), bindings)
                    _refine(result, substitute_type(type_, bindings), f"call of @{call.callee.value}")
                    self.partial |= not _is_known(type_of(result))
                self.changed |= result.type != before

    def _bind_results(self, call: func.CallOp, type_: RelayType, found: RelayType, bindings: Bindings) -> None:
        """Adds to `bindings` the symbols that occur only in results of a callee: from the type of the call's result, or new ones."""
        own = sorted(symbols_of_type(type_) - bindings.keys())
        if not own or not same_structure(type_, found):
            return
        # Under names that the caller cannot have.
        hidden = {name: f"_{name}_of_{call.callee.value}" for name in own}
        pattern = substitute_type(type_, {**bindings, **{name: symbol(h) for name, h in hidden.items()}})
        stated = match([pattern], [found], f"result of @{call.callee.value}", hidden.values())
        for name, h in hidden.items():
            bindings[name] = stated[h] if h in stated else self.fresh(name)

    def _cast(self, call: func.CallOp) -> None:
        """Writes the operands and results of a call in the symbols of the callee, as MLIR wants them, with casts around it."""
        callee = self.by_name[call.callee.value]
        signature = signature_of(callee)
        operation = call.operation
        found_types = [v.type for values in (operation.operands, operation.results) for v in values]
        if found_types == [*signature.inputs, *signature.results]:
            return
        bindings = bindings_of(call, callee)
        with operation.location, ir.InsertionPoint(operation):
            for i, type_ in enumerate(signature.inputs):
                if operation.operands[i].type != type_:
                    operation.operands[i] = cast_argument(uncast(operation.operands[i]), relay_type(type_))
        following = ir.InsertionPoint.after(operation)
        for result, type_ in zip(operation.results, signature.results, strict=True):
            found, own = type_of(result), relay_type(type_)
            if found == own:
                continue
            self._bind_results(call, own, found, bindings)
            uses = [(use.owner.operation, use.operand_number) for use in result.uses]
            result.set_type(type_)
            with operation.location, following:
                new = cast_result(result, bindings, operation)
            for owner, i in uses:
                owner.operands[i] = new

    # ---- what nothing says

    def _name_a_result(self) -> bool:
        """Assigns new symbols to the unspecified sizes of the first branch, loop or call that has any; returns whether there was one."""
        for name in reversed(self.callers_first):
            calls = [call.operation for call in self.calls[name]]
            for op in find_operations(self.by_name[name], lambda op: op.name in ("relay.if", "relay.while", "func.call")):
                if op.name == "func.call" and op not in calls:
                    continue
                values = [op.regions[1].blocks[0].arguments[0]] if op.name == "relay.while" else list(op.results)
                for value in values:
                    if not _is_known(type_of(value)):
                        self._set(value, map_sizes(type_of(value), lambda d: self.fresh("size") if d is None else d))
                        return True
        return False


@module_pass(opt_level=0, name="InferType")
def infer_type(mod: IRModule, ctx: PassContext) -> IRModule:
    """Infers every type anew: unknown dimensions that follow from known ones become known, in signatures too, and others get names."""
    normalize_sizes(mod.module)
    _Inference(mod).run()
    return mod
