"""Names of generated C code, and names that are not taken yet, by Relay's functions."""

import re
from collections.abc import Iterable

from relayc.frontend.relay.ast import GlobalVar, RelayModule

__all__ = [
    "GlobalVarSupply",
    "NameSupply",
    "mangle_module_name",
    "prefix_generated_name",
    "prefix_name",
    "sanitize_name",
    "to_c_constant_style",
    "to_c_function_style",
    "to_c_variable_style",
]


def _checked(name: str, kind: str) -> str:
    if not name:
        raise ValueError(f"{kind} name is empty")
    if not name.startswith("TVM"):
        raise ValueError(f"{kind} not TVM prefixed: {name!r}")
    return name


def to_c_function_style(name: str) -> str:
    """`TVMGen_my_model` as `TVMGenMyModel`: letters only. Raises ValueError for a name without the prefix `TVM`."""
    words = re.sub("[^A-Za-z_]", "", _checked(name, "Function").removeprefix("TVM")).split("_")
    return "TVM" + "".join(map(str.capitalize, words))


def to_c_variable_style(name: str) -> str:
    """`TVM_My_Var` as `tvm_my_var`. Raises ValueError for a name without the prefix `TVM`."""
    return _checked(name, "Variable").lower()


def to_c_constant_style(name: str) -> str:
    """`TVM_my_size` as `TVM_MY_SIZE`. Raises ValueError for a name without the prefix `TVM`."""
    return _checked(name, "Constant").upper()


def _prefixed(prefix: str, names: str | Iterable[str]) -> str:
    if isinstance(names, str) and not names:
        raise ValueError("Name is empty")
    segments = [names] if isinstance(names, str) else list(names)
    if not segments:
        raise ValueError("Name segments empty")
    if not all(segments):
        raise ValueError("Name segment is empty")
    return "_".join([prefix, *segments])


def prefix_name(names: str | Iterable[str]) -> str:
    """`TVM_` before a name or before segments, which `_` joins. Raises ValueError for an empty name or segment."""
    return _prefixed("TVM", names)


def prefix_generated_name(names: str | Iterable[str]) -> str:
    """`TVMGen_` before a name or before segments, which `_` joins. Raises ValueError for an empty name or segment."""
    return _prefixed("TVMGen", names)


def sanitize_name(name: str) -> str:
    """The name with `_` for each character that a C identifier may not have. Raises ValueError for an empty name."""
    if not name:
        raise ValueError("Name is empty")
    return re.sub(r"\W", "_", name, flags=re.ASCII)


def mangle_module_name(name: str | None) -> str:
    """The prefix of the symbols of a module. Raises ValueError for characters that are not ASCII."""
    if name and not name.isascii():
        raise ValueError(f"name of a module: expected ASCII characters, found {name!r}")
    return f"tvmgen_{name}" if name else "tvmgen"


class NameSupply:
    """Names that differ from all names that were reserved or given before.

    Args:
      prefix: of all names; an underscore joins the two.
    """

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self._counts: dict[str, int] = {}

    def _full(self, name: str, add_prefix: bool) -> str:
        return f"{self.prefix}_{name}" if add_prefix and self.prefix else name

    def reserve_name(self, name: str, add_prefix: bool = True) -> str:
        """Takes a name: the name with the prefix."""
        full = self._full(name, add_prefix)
        self._counts.setdefault(full, 0)
        return full

    def fresh_name(self, name: str, add_prefix: bool = True, add_underscore: bool = True) -> str:
        """A name that is not taken, with `_` for each `.`: the name itself, or the name with the next number after an underscore."""
        found = full = self._full(name, add_prefix).replace(".", "_")
        while found in self._counts:
            self._counts[full] += 1
            found = f"{full}{'_' if add_underscore else ''}{self._counts[full]}"
        self._counts[found] = 0
        return found

    def contains_name(self, name: str, add_prefix: bool = True) -> bool:
        """Whether the name is taken."""
        return self._full(name, add_prefix) in self._counts


class GlobalVarSupply:
    """Global variables whose names differ from all names that were given before.

    Args:
      value: a supply of names, or modules whose functions keep their names. The prefix of names is the attribute `mod_name` of the first
        module, or else `tvmgen_default`.
    """

    def __init__(self, value: NameSupply | RelayModule | Iterable[RelayModule] | None = None) -> None:
        self._vars: dict[str, GlobalVar] = {}
        if value is None or isinstance(value, NameSupply):
            self._names = NameSupply() if value is None else value
            return
        modules = [value] if isinstance(value, RelayModule) else list(value)
        self._names = NameSupply(modules[0].attrs.get("mod_name", "tvmgen_default") if modules else "")
        for module in modules:
            for var in module.get_global_vars():
                self.reserve_global(var)

    def reserve_global(self, var: GlobalVar, allow_conflict: bool = False) -> None:
        """Takes the name of a variable. Raises ValueError if another variable has the name, unless `allow_conflict`."""
        if not allow_conflict and self._vars.get(var.name_hint, var) is not var:
            raise ValueError(f"global variable @{var.name_hint}: expected a name that no other variable has")
        self._names.reserve_name(var.name_hint, add_prefix=False)
        self._vars[var.name_hint] = var

    def fresh_global(self, name: str, add_prefix: bool = True) -> GlobalVar:
        """A new variable with an unused name."""
        return self._take(self._names.fresh_name(name, add_prefix))

    def unique_global_for(self, name: str, add_prefix: bool = True) -> GlobalVar:
        """The variable of a name: the variable that has the name, or a new variable."""
        full = self._names.reserve_name(name, add_prefix)
        return self._vars[full] if full in self._vars else self._take(full)

    def _take(self, name: str) -> GlobalVar:
        return self._vars.setdefault(name, GlobalVar(name))
