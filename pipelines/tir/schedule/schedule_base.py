"""Application of primitives by the methods of Schedule."""

from typing import Any

from relayc.dialects.functions import symbol_name
from relayc.dialects.mlir import ir
from relayc.dialects.relay.module import IRModule
from relayc.dialects.tir import names
from relayc.pipelines.tir import primitives  # noqa: F401 (registers them)
from relayc.pipelines.tir.primitives.registry import PRIMITIVES
from relayc.pipelines.tir.schedule.references import BlockLike, BlockRV, LoopLike, LoopRV
from relayc.pipelines.tir.schedule.trace import AppliedPrimitive, Trace, arguments_text
from relayc.pipelines.tir.tree.arguments import Chosen
from relayc.pipelines.tir.tree.members import ScheduleError
from relayc.pipelines.tir.tree.structure import Nest


class Methods:
    """The functions of a module that is being scheduled, and how methods of a schedule apply primitives to one of them."""

    def __init__(self, mod: IRModule, nests: dict[str, Nest]) -> None:
        self._mod = mod
        self._nests = nests
        """Nests of functions as they are now; nothing else may change these functions."""
        self._trace = Trace()
        functions = self._functions()
        self._function = "main" if "main" in functions else next(iter(functions))

    def _functions(self) -> dict[str, ir.OpView]:
        return {symbol_name(op): op for op in self._mod.module.body.operations if names.FORM in op.attributes}

    @property
    def nest(self) -> Nest:
        """The function that is being scheduled."""
        if self._function not in self._nests:
            with self._mod.context:
                self._nests[self._function] = Nest(self._functions()[self._function])
        return self._nests[self._function]

    def _apply(self, primitive: str, **arguments: Any) -> list[str]:
        """Applies a primitive, and records it. Raises ScheduleError, which names the primitive and its arguments."""
        named = {key: _by_name(value) for key, value in arguments.items()}
        values = {key: _value(value) for key, value in named.items()}
        with self._mod.context:
            try:
                made = PRIMITIVES[primitive](self.nest, **values)
            except ScheduleError as error:
                raise ScheduleError(f"{primitive}({arguments_text(named)}): {error}") from None
        results = tuple(made or ())
        self._trace.steps.append(AppliedPrimitive(primitive, self._function, named, results))
        return list(results)

    def _loops(self, primitive: str, **arguments: Any) -> list[LoopRV]:
        return [LoopRV(name) for name in self._apply(primitive, **arguments)]

    def _blocks(self, primitive: str, **arguments: Any) -> list[BlockRV]:
        return [BlockRV(name) for name in self._apply(primitive, **arguments)]

    def _operand(self, block_or_loop: BlockLike | LoopLike) -> dict[str, str]:
        """A block or a loop as an argument; a text is a loop if there is one of that name."""
        is_loop = isinstance(block_or_loop, LoopRV) or (isinstance(block_or_loop, str) and block_or_loop in self.nest.loops())
        return {"loop" if is_loop else "block": str(block_or_loop)}


def _by_name(value: Any) -> Any:
    """Replaces blocks and loops by their names."""
    if isinstance(value, (BlockRV, LoopRV)):
        return value.name
    return [_by_name(v) for v in value] if isinstance(value, (list, tuple)) else value


def _value(value: Any) -> Any:
    """Replaces choices of knobs by their numbers."""
    if isinstance(value, Chosen):
        return value.value
    return [_value(v) for v in value] if isinstance(value, (list, tuple)) else value
