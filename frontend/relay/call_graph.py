"""Which functions of a module call which."""

from collections import Counter

from relayc.frontend.relay.ast.expr import Expr, GlobalVar
from relayc.frontend.relay.ast.functor import children, post_order
from relayc.frontend.relay.ast.module import RelayModule


class CallGraph:
    """The functions that the functions of a module name.

    Attributes:
      module: the module.
    """

    def __init__(self, module: RelayModule) -> None:
        self.module = module
        self._named = {var.name_hint: _named_in(function) for var, function in module.functions.items()}

    def _of(self, var: GlobalVar | str) -> Counter[str]:
        return self._named[self.module.get_global_var(var if isinstance(var, str) else var.name_hint).name_hint]

    def ref_count(self, var: GlobalVar | str) -> int:
        """How many times functions name a function. Raises KeyError if the module has none of the name, as the following do."""
        name = self.module.get_global_var(var if isinstance(var, str) else var.name_hint).name_hint
        return sum(named[name] for named in self._named.values())

    def global_call_count(self, var: GlobalVar | str) -> int:
        """How many times a function names functions."""
        return sum(self._of(var).values())

    def is_recursive(self, var: GlobalVar | str) -> bool:
        """Whether a function names itself."""
        return (var if isinstance(var, str) else var.name_hint) in self._of(var)

    def print_var(self, var: GlobalVar | str) -> str:
        """The functions that a function refers to, as text."""
        named = self._of(var)
        name = var if isinstance(var, str) else var.name_hint
        calls = "".join(f"  @{other}: {count}\n" for other, count in named.items())
        return f"@{name}: #refs = {self.ref_count(name)}\n{calls}"

    def __str__(self) -> str:
        return "\n".join(map(self.print_var, self._named))


def _named_in(function: Expr) -> Counter[str]:
    """How many expressions in a function have a global function directly in them, by its name."""
    parts = (part for node in post_order(function) for part in children(node))
    return Counter(part.name_hint for part in parts if isinstance(part, GlobalVar))
