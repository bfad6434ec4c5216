"""What is known of where the values of a program are, while devices are planned: domains, which are unified.

The domain of a tensor, a tuple, a reference or a data type is one device. The domain of a function has a domain for each parameter and the
result; the device of a function as a value is the device of its result.
"""

from typing import Any

from relayc.dialects.relay.errors import RelayError
from relayc.frontend.relay.ast import expr as e
from relayc.frontend.relay.ast import types as t
from relayc.frontend.relay.ast.attrs import Attrs
from relayc.frontend.relay.ast.devices import CompilationConfig, VirtualDevice

FREE = VirtualDevice()
_SPECIAL = {"vm.shape_of": "?h", "vm.reshape_tensor": "xhx", "vm.invoke_tvm_op": "?xxx", "memory.alloc_tensor": "xhhx"}
"""Operators with operands, or a result (the last letter), on the host (h), on one device with others (x), or anywhere (?)."""


class Domain:
    """A device (`parts` is empty), or the domains of the parameters and the result of a function."""

    def __init__(self, device: VirtualDevice = FREE, parts: "tuple[Domain, ...]" = ()) -> None:
        self.device, self.parts = device, parts


def on_device(expr: e.Expr) -> e.Call | None:
    """The call if it specifies the device of its operand."""
    return expr if isinstance(expr, e.Call) and isinstance(expr.op, e.Op) and expr.op.name == "on_device" else None


def device_copy(expr: e.Expr) -> tuple[e.Expr, VirtualDevice, VirtualDevice] | None:
    """The operand, source and destination of a copy between devices, or of several consecutive copies."""
    if not (isinstance(expr, e.Call) and isinstance(expr.op, e.Op) and expr.op.name == "device_copy"):
        return None
    assert expr.attrs is not None
    inner = device_copy(expr.args[0])
    source = (expr.args[0], expr.attrs["src_virtual_device"]) if inner is None else inner[:2]
    return (*source, expr.attrs["dst_virtual_device"])


class Domains:
    """The domains of the expressions of a module, which have types."""

    def __init__(self, config: CompilationConfig) -> None:
        self.config = config
        self._host = Domain(config.host)
        self._of: dict[Any, Domain] = {}
        self._callees: dict[e.Call, Domain] = {}
        self._same: dict[Domain, Domain] = {}

    # ---- what is unified

    def find(self, domain: Domain) -> Domain:
        """The representative of a domain."""
        root = domain
        while root in self._same:
            root = self._same[root]
        while domain is not root:
            self._same[domain], domain = root, self._same[domain]
        return root

    def unify(self, a: Domain, b: Domain) -> bool:
        """Makes two domains the same; whether their devices agree."""
        a, b = self.find(a), self.find(b)
        if a is b:
            return True
        if len(a.parts) != len(b.parts):
            return False
        if a.parts:
            if not all([self.unify(x, y) for x, y in zip(a.parts, b.parts, strict=True)]):
                return False
            joined = b
        else:
            device = a.device.join(b.device)
            if device is None:
                return False
            joined = b if device == b.device else a if device == a.device else Domain(self.config.canonical(device))
        self._same.update((x, joined) for x in (a, b) if x is not joined)
        return True

    def unify_if_possible(self, a: Domain, b: Domain) -> None:
        """Unifies two domains if their devices agree."""
        before = dict(self._same)
        if not self.unify(a, b):
            self._same = before

    def collapse(self, first: Domain, other: Domain) -> bool:
        """Makes a domain of one device, and all parts of another, the same."""
        other = self.find(other)
        return all([self.unify(part, first) for part in other.parts]) if other.parts else self.unify(first, other)

    def require(self, expr: e.Expr, other: Domain, collapses: bool = False) -> None:
        """Unifies the domain of an expression with another one. Raises RelayError if they contradict each other."""
        if not (self.collapse if collapses else self.unify)(self.of(expr), other):
            raise RelayError(f"PlanDevices: expected {self.text(other)}, found {self.text(self.of(expr))}, for the expression\n{expr}")

    # ---- domains of expressions

    def of(self, expr: e.Expr) -> Domain:
        """The domain of an expression."""
        key = expr.vid if isinstance(expr, e.Var) else expr.name_hint if isinstance(expr, e.GlobalVar) else expr
        if key not in self._of:
            self._of[key] = self.of_type(expr.checked_type)
        return self.find(self._of[key])

    def of_type(self, type_: t.Type, device: VirtualDevice = FREE) -> Domain:
        """The domain of a value of a type, or of the result of a function, that is on a device."""
        if isinstance(type_, t.FuncType):
            return Domain(parts=(*map(self.of_type, type_.arg_types), self.of_type(type_.ret_type, device)))
        return Domain(self.config.canonical(device))

    def callee(self, call: e.Call) -> Domain:
        """The domain of what a call calls. Operators are on any device: each call has a domain of its own."""
        if call not in self._callees:
            if not isinstance(call.op, (e.Op, e.Constructor)):
                return self.of(call.op)
            self._callees[call] = Domain(parts=self._operator(call))
        return self.find(self._callees[call])

    def _operator(self, call: e.Call) -> tuple[Domain, ...]:
        type_, attrs = call.checked_type, call.attrs or Attrs()
        if isinstance(call.op, e.Constructor):
            result = self.of_type(type_)
            params = [self.of_type(arg.checked_type) for arg in call.args]
            for param in params:
                self.collapse(result, param)
            return (*params, result)
        assert isinstance(call.op, e.Op)
        copied = device_copy(call)
        if copied is not None:
            return self.of_type(type_, attrs["src_virtual_device"]), self.of_type(type_, attrs["dst_virtual_device"])
        if on_device(call) is not None:
            is_fixed = attrs["constrain_body"], attrs["constrain_result"]
            body, result = (self.of_type(type_, attrs["virtual_device"] if fixed else FREE) for fixed in is_fixed)
            return body, result
        if call.op.name == "memory.alloc_storage":
            return self._host, self._host, self._host, self.of_type(type_, attrs["virtual_device"])
        shared = {"x": Domain(), "h": self._host}
        return tuple(shared.get(letter) or Domain() for letter in _SPECIAL.get(call.op.name, "x" * (len(call.args) + 1)))

    # ---- devices

    def result(self, domain: Domain) -> VirtualDevice:
        """The device of a value, or of what is the result of a function at last."""
        domain = self.find(domain)
        while domain.parts:
            domain = self.find(domain.parts[-1])
        return domain.device

    def is_fixed(self, domain: Domain) -> bool:
        """Whether everything is known of all devices of a domain."""
        domain = self.find(domain)
        return all(map(self.is_fixed, domain.parts)) if domain.parts else domain.device.is_fixed

    def default(self, domain: Domain, device: VirtualDevice) -> None:
        """Sets what is not known of the devices of a domain."""
        domain = self.find(domain)
        for part in domain.parts:
            self.default(part, device)
        if not domain.parts:
            self.unify(domain, Domain(self.config.canonical(domain.device.or_else(device))))

    def default_function(self, domain: Domain) -> None:
        """Sets what is not known of the devices of a function: of its result to the default, then of parameters to that of the result."""
        last = self.find(domain)
        while last.parts:
            last = self.find(last.parts[-1])
        self.default(last, self.config.default)
        self.default(domain, self.result(domain))

    def text(self, domain: Domain) -> str:
        """A domain in messages."""
        domain = self.find(domain)
        if domain.parts:
            return f"fn ({', '.join(map(self.text, domain.parts[:-1]))}) -> {self.text(domain.parts[-1])}"
        return "any device" if domain.device.is_free else f"{domain.device.device or 'any device'} {domain.device.memory_scope}".strip()
