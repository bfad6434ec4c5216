"""PlanDevices: where the value of every expression is.

`on_device` gives the device of some expressions; `device_copy`, parameters with a device and operators that need the host give the devices
of others. Unification (`device_domains`) finds what these imply: the operands and the result of an operator are on one device; the value of
a let and the argument of a function may be on devices of their own. The plan is written as devices of parameters and functions, and as
`on_device` with `constrain_result`: an expression is where the innermost of these around it says. The program is copied from device to
device only where `on_device` allowed it.
"""

from collections.abc import Iterator

from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast.devices import CompilationConfig, VirtualDevice
from relayc.frontend.relay.ast.functor import children, post_order, pre_order, rebuilt, replace_calls, rewritten
from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.inference import infer_module
from relayc.frontend.relay.op.functions import call as op_call
from relayc.frontend.relay.passes.device_domains import FREE, Domains, device_copy, on_device


def plan_devices(mod: RelayModule, config: CompilationConfig) -> RelayModule:
    """Determines the device of every expression, and inserts copies where the program allows and needs them.

    Raises RelayError if the devices requested by the program contradict each other.
    """
    typed = infer_module(_copied_where_used_twice(mod.map_functions(_fixed), config))
    domains = Domains(config)
    for var, function in typed.functions.items():
        var.checked_type_ = function.checked_type_
        domains.require(var, domains.of(function))
        for node in _nodes(function):
            _analyse(node, domains)
    for function in typed.functions.values():
        for node in _nodes(function):
            found = on_device(node)
            if found is not None and found.attrs is not None and not found.attrs["constrain_body"] and not found.attrs["constrain_result"]:
                domains.unify_if_possible(domains.of(found), domains.of(found.args[0]))
    for function in typed.functions.values():
        for node in pre_order([function], _planned_parts):
            _default(node, domains)
    return infer_module(typed.map_functions(_Capture(domains).function))


def _planned_parts(node: e.Expr) -> list[e.Expr]:
    return [] if _is_primitive(node) else children(node)


def _is_primitive(node: e.Expr) -> bool:
    return isinstance(node, e.Function) and bool(node.attrs.get("Primitive"))


def _nodes(root: e.Expr) -> Iterator[e.Expr]:
    """The expressions in an expression, after their parts, without functions that represent one kernel."""
    return post_order(root, _planned_parts)


def _on(expr: e.Expr, device: VirtualDevice, result: bool = True) -> e.Call:
    return op_call("on_device", [expr], {"virtual_device": device, "constrain_result": result, "constrain_body": True}, expr.span)


def _copy(expr: e.Expr, source: VirtualDevice, target: VirtualDevice) -> e.Call:
    return op_call("device_copy", [expr], {"src_virtual_device": source, "dst_virtual_device": target}, expr.span)


# ---- before types are known --------------------------------------------------------------------------------------------------------------


def _fixed(function: e.Function) -> e.Expr:
    """A function in which results of functions and values of lets that are said to be on a device stay there, and fields of a tuple that is
    said to be on a device are said to be there: the field is copied, not the tuple."""

    def fixed(_: e.Expr, new: e.Expr) -> e.Expr:
        if isinstance(new, e.Function):
            return new.replace(body=_staying(new.body))
        if isinstance(new, e.Let):
            return new.replace(value=_staying(new.value))
        device = _annotation(new.tuple_value) if isinstance(new, e.TupleGetItem) else None
        if device is None:
            return new
        return _on(new.replace(tuple_value=new.tuple_value.args[0]), device, False)  # type: ignore[attr-defined] # a call

    return rewritten(function, fixed)


def _annotation(expr: e.Expr) -> VirtualDevice | None:
    """The annotated device of an expression whose users may be on another device."""
    found = on_device(expr)
    if found is None or found.attrs is None or not found.attrs["constrain_body"] or found.attrs["constrain_result"]:
        return None
    return found.attrs["virtual_device"]


def _staying(expr: e.Expr) -> e.Expr:
    device = _annotation(expr)
    return expr if device is None else _on(expr.args[0], device)  # type: ignore[attr-defined] # a call


def _copied_where_used_twice(mod: RelayModule, config: CompilationConfig) -> RelayModule:
    """A module in which what is an operand of calls on different devices, as far as annotations say these, is copied for the later ones."""
    devices: dict[e.Expr, VirtualDevice] = {}
    wanted: dict[e.Expr, VirtualDevice] = {}
    conflicts: set[e.Expr] = set()
    for function in mod.functions.values():
        for node in pre_order([function], lambda node: list(node.args) if isinstance(node, e.Call) else children(node)):
            if not isinstance(node, e.Call):
                continue
            own = devices.get(node, FREE)
            source, found, copied = own, on_device(node), device_copy(node)
            if found is not None and found.attrs is not None:
                source = found.attrs["virtual_device"] if found.attrs["constrain_body"] else own
                own = found.attrs["virtual_device"] if found.attrs["constrain_result"] else own
            elif copied is not None and node.attrs is not None:
                source, own = node.attrs["src_virtual_device"], node.attrs["dst_virtual_device"]
            wanted[node] = source
            devices[node] = devices.get(node, FREE).join(own) or own
            for arg in node.args:
                joined = devices.get(arg, FREE).join(source)
                devices[arg] = devices[arg] if joined is None else joined
                if joined is None and on_device(arg) is None:
                    conflicts.add(arg)

    def with_copies(node: e.Call, new: e.Call) -> e.Expr | None:
        if node not in wanted or wanted[node].is_free:
            return None
        args = list(new.args)
        for i, arg in enumerate(node.args):
            places = config.canonical(devices[arg]), config.canonical(wanted[node])
            if arg in conflicts and places[0] != places[1]:
                args[i] = _copy(args[i], *places)
        return new.replace(args=tuple(args))

    return mod.map_functions(lambda function: replace_calls(function, with_copies)) if conflicts else mod


# ---- constraints -------------------------------------------------------------------------------------------------------------------------


def _analyse(node: e.Expr, domains: Domains) -> None:
    """Records the constraints on the devices of an expression and its parts. Raises RelayError if they contradict known ones."""
    own = domains.of(node) if not isinstance(node, (e.Op, e.Constructor)) else None
    if own is None:
        return
    if isinstance(node, e.Call):
        parts = domains.find(domains.callee(node)).parts
        for part, domain in zip((*node.args, node), parts, strict=True):
            domains.require(part, domain)
    elif isinstance(node, e.Function):
        for var, domain in zip(node.params, own.parts, strict=False):
            domains.require(var, domain)
            if var.virtual_device_ is not None:
                domains.require(var, domains.of_type(var.checked_type, var.virtual_device_))
        if not _is_primitive(node):
            domains.require(node.body, own.parts[-1])
        if node.virtual_device_ is not None:
            domains.require(node, domains.of_type(node.checked_type, node.virtual_device_))
    elif isinstance(node, e.Let):
        domains.require(node.var, domains.of(node.value))
        domains.require(node.body, own)
    elif isinstance(node, e.Match):
        domains.require(node.data, own, collapses=True)
        for clause in node.clauses:
            domains.require(clause.rhs, own)
            for var in e.pattern_vars(clause.lhs):
                domains.require(node.data, domains.of(var), collapses=True)
    elif isinstance(node, e.If):
        domains.require(node.cond, own, collapses=True)
        domains.require(node.true_branch, own)
        domains.require(node.false_branch, own)
    else:  # a tuple, a field, a reference: all parts are where the whole is
        for part in children(node):
            whole, inner = (part, node) if isinstance(node, (e.TupleGetItem, e.RefRead)) else (node, part)
            domains.require(whole, domains.of(inner), collapses=True)


def _default(node: e.Expr, domains: Domains) -> None:
    """Sets the devices of an expression and its parts if they are unconstrained."""
    if isinstance(node, e.Call):
        if not domains.is_fixed(domains.callee(node)):
            domains.default_function(domains.callee(node))
    elif isinstance(node, e.Function) and not _is_primitive(node):
        if not domains.is_fixed(domains.of(node)):
            domains.default_function(domains.of(node))
    elif isinstance(node, e.Let) and not domains.is_fixed(domains.of(node.var)):
        domains.default(domains.of(node.var), domains.result(domains.of(node)))


# ---- the plan as a program ---------------------------------------------------------------------------------------------------------------


class _Capture:
    """Writes the plan into functions."""

    def __init__(self, domains: Domains) -> None:
        self._domains = domains
        self._made: dict[e.Expr, e.Expr] = {}

    def function(self, function: e.Function) -> e.Expr:
        """A function annotated with the devices of its expressions."""
        nodes = list(_nodes(function))
        params = {p.vid for node in nodes if isinstance(node, e.Function) and not _is_primitive(node) for p in node.params}
        for node in nodes:
            self._made[node] = self._param(node) if isinstance(node, e.Var) and node.vid in params else self._changed(node)
        return self._made[function]

    def _device(self, expr: e.Expr) -> VirtualDevice:
        """The device of an expression; annotations are removed."""
        found = on_device(expr)
        device = self._domains.result(self._domains.of(expr if found is None else found.args[0]))
        assert not device.is_free
        return device

    def _param(self, var: e.Var) -> e.Var:
        made = e.Var(var.vid, var.type_annotation, var.span)
        made.checked_type_, made.virtual_device_ = var.checked_type_, self._device(var)
        return made

    def _child(self, expr: e.Expr, lexical: VirtualDevice, expected: VirtualDevice, actual: VirtualDevice | None = None) -> e.Expr:
        """A part of an expression, copied from its actual to the expected device, with an annotation if the context does not imply it."""
        if isinstance(expr, (e.Op, e.Constructor)):
            return expr
        made, actual = self._made[expr], self._device(expr) if actual is None else actual
        if actual != expected:
            made = _copy(said(made, actual), actual, expected)
        return made if expected == lexical else said(made, expected)

    def _changed(self, node: e.Expr) -> e.Expr:
        if not children(node) or _is_primitive(node):
            return node
        if on_device(node) is not None:
            return self._made[node.args[0]]  # type: ignore[attr-defined] # a call
        own, copied = self._device(node), device_copy(node)
        if copied is not None:
            source, target = map(self._domains.config.canonical, copied[1:])
            return self._made[copied[0]] if source == target else self._child(copied[0], target, target, source)
        if isinstance(node, e.Call):
            domains = self._domains.find(self._domains.callee(node)).parts[:-1]
            args = [self._child(arg, own, self._domains.result(domain)) for arg, domain in zip(node.args, domains, strict=True)]
            return node.replace(op=self._child(node.op, own, own), args=tuple(args))
        if isinstance(node, e.Let):
            value = self._child(node.value, FREE, self._device(node.var))
            return node.replace(value=value, body=self._child(node.body, own, own))
        if isinstance(node, e.Function):
            params = [self._made[p] for p in node.params]
            made = e.Function(params, self._child(node.body, own, own), node.ret_type, node.type_params, node.attrs, node.span)  # type: ignore[arg-type] # variables
            made.virtual_device_ = own
            return made
        return rebuilt(node, iter([self._child(part, own, own) for part in children(node)]))


def said(expr: e.Expr, device: VirtualDevice) -> e.Expr:
    """An expression annotated with a device, unless its own definition determines it."""
    if isinstance(expr, (e.Var, e.GlobalVar, e.Op, e.Constructor, e.Function)) or device.is_free:
        return expr
    found = on_device(expr)
    return _on(expr if found is None else found.args[0], device)


def planned_devices(expr: e.Expr) -> dict[e.Expr, VirtualDevice]:
    """The device of each expression after PlanDevices: from the innermost enclosing function or `on_device`."""
    found: dict[e.Expr, VirtualDevice] = {}
    waiting: list[tuple[e.Expr, VirtualDevice]] = [(expr, FREE)]
    bound: dict[e.Id, VirtualDevice] = {}
    while waiting:
        node, device = waiting.pop()
        if node in found or isinstance(node, e.Op):
            continue
        says, copied = on_device(node), device_copy(node)
        if isinstance(node, e.Function):
            device = node.virtual_device_ or device
            bound.update((p.vid, p.virtual_device_ or device) for p in node.params)
        elif says is not None and says.attrs is not None and says.attrs["constrain_result"]:
            device = says.attrs["virtual_device"]
        elif isinstance(node, e.Var):
            device = bound.get(node.vid, device)
        inner = device
        if copied is not None and node.attrs is not None:  # type: ignore[attr-defined] # a call
            inner, device = copied[1:]
        if isinstance(node, e.Let):
            value = on_device(node.value)
            bound[node.var.vid] = device if value is None or value.attrs is None else value.attrs["virtual_device"]
        found[node] = device
        waiting.extend((part, inner) for part in reversed(children(node)))
    return {node: device for node, device in found.items() if not device.is_free}
