"""Which functions call which: the strongly connected components of calls."""

from collections.abc import Collection, Iterator, Mapping


def components(callees: Mapping[str, Collection[str]]) -> list[list[str]]:
    """Functions that call one another, directly or not, together; callees before their callers (Tarjan's algorithm).

    Args:
      callees: the names that each function calls; those that are no keys are left out.
    """
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def enter(name: str) -> tuple[str, Iterator[str]]:
        index[name] = low[name] = len(index)
        stack.append(name)
        return name, iter([callee for callee in callees[name] if callee in callees])

    for root in callees:
        pending = [enter(root)] if root not in index else []
        while pending:  # a stack of its own: chains of calls may be longer than Python's
            name, left = pending[-1]
            callee = next(left, None)
            if callee is None:
                pending.pop()
                if pending:
                    caller = pending[-1][0]
                    low[caller] = min(low[caller], low[name])
                if low[name] == index[name]:
                    at = stack.index(name)
                    found.append(stack[at:])
                    del stack[at:]
            elif callee not in index:
                pending.append(enter(callee))
            elif callee in stack:
                low[name] = min(low[name], index[callee])
    return found


def is_recursive(component: Collection[str], callees: Mapping[str, Collection[str]]) -> bool:
    """Whether a call of a function of a component can lead to another call of it."""
    return any(callee in component for name in component for callee in callees[name])
