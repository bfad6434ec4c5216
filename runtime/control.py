"""Control of programs that make values which are no tensors: calls, branches, data types, references and functions as values.

A function is a list of steps on registers; computations on tensors are compiled kernels, which a step calls. A machine takes the steps one
by one. Calls wait on a list: they may nest deeper than the stack.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from relayc.runtime.values import Closure, ConstructorValue, RefValue

NO_CLAUSE = "expected a value that a clause of match takes, found one of no clause"
"""How the message of NoClause ends."""

MAX_CALLS = 10_000_000
"""How many calls may wait for others."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step; `to` is the register of its result."""


@dataclass(frozen=True, slots=True)
class Constant(Step):
    """A tensor that is known."""

    to: int
    value: Any


@dataclass(frozen=True, slots=True)
class Compute(Step):
    """A kernel on tensors."""

    to: int
    kernel: Callable[..., Any]
    args: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Make(Step):
    """A value of a constructor; without a constructor, a tuple."""

    to: int
    constructor: Any
    args: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Field(Step):
    """A field of a tuple or of a constructor's value."""

    to: int
    value: int
    index: int


@dataclass(frozen=True, slots=True)
class Refer(Step):
    """A new reference."""

    to: int
    value: int


@dataclass(frozen=True, slots=True)
class Read(Step):
    """Reads the value of a reference."""

    to: int
    ref: int


@dataclass(frozen=True, slots=True)
class Write(Step):
    """Makes a reference refer to another value; the result is the empty tuple."""

    to: int
    ref: int
    value: int


@dataclass(frozen=True, slots=True)
class Bind(Step):
    """Creates a function value from a function and the values that it captures."""

    to: int
    function: int
    captures: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Call(Step):
    """A call of a function that is known. One without `to` is the last step: its result is that of the function."""

    to: int | None
    function: int
    args: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Apply(Step):
    """A call of a function that is a value; `to` as in Call."""

    to: int | None
    callee: int
    args: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Move(Step):
    """A value in another register."""

    to: int
    value: int


@dataclass(frozen=True, slots=True)
class Jump(Step):
    """Goes on at another step."""

    target: int


@dataclass(frozen=True, slots=True)
class Unless(Step):
    """Jumps to another step if a scalar is false."""

    value: int
    target: int


@dataclass(frozen=True, slots=True)
class Unlike(Step):
    """Jumps to another step if a value was created by another constructor."""

    value: int
    tag: int
    target: int


@dataclass(frozen=True, slots=True)
class Give(Step):
    """The end of a function: its result."""

    value: int


@dataclass(frozen=True, slots=True)
class Fail(Step):
    """Raises NoClause."""

    message: str


@dataclass(frozen=True, slots=True)
class Function:
    """A function.

    Its arguments are in the first registers, behind them the values that it captures, and then the closure itself, so that it can call
    itself.

    Attributes:
      name: for people.
      params: how many arguments it takes.
      captured: how many registers are filled with arguments and captures.
      registers: how many registers it has.
    """

    name: str
    params: int
    captured: int
    registers: int
    steps: tuple[Step, ...]


def reads(step: Any) -> tuple[int, ...]:
    """The registers that a step reads."""
    if isinstance(step, Bind):
        return step.captures
    single = [getattr(step, name) for name in ("value", "ref", "callee") if hasattr(step, name) and not isinstance(step, Constant)]
    return (*single, *getattr(step, "args", ()))


class NoClause(ValueError):
    """A value that no clause of a match takes."""


class Machine:
    """Runs functions.

    Args:
      functions: by the numbers that steps have for them.
    """

    def __init__(self, functions: Sequence[Function]) -> None:
        self._functions = functions

    def run(self, called: int | Closure, args: Sequence[Any]) -> Any:
        """The result of a function, by its number or as a value.

        Raises:
          NoClause: no clause of a match takes a value.
          RecursionError: more than MAX_CALLS calls wait.
          What kernels raise.
        """
        waiting: list[tuple[Function, list[Any], int, int]] = []  # functions that wait, with the register of the result
        closure = Closure(called, (), self) if isinstance(called, int) else called
        function, at = self._functions[closure.function], 0
        values = self._entered(function, args, closure)
        steps = function.steps
        while True:
            step: Any = steps[at]  # the kind determines the class
            at += 1
            kind = type(step)
            if kind is Field:
                values[step.to] = values[step.value][step.index]
            elif kind is Unlike:
                if values[step.value].tag != step.tag:
                    at = step.target
            elif kind is Make:
                fields = [values[i] for i in step.args]
                made = step.constructor
                values[step.to] = fields if made is None else ConstructorValue(made.tag, fields, made)
            elif kind is Compute:
                values[step.to] = step.kernel(*[values[i] for i in step.args])
            elif kind is Call or kind is Apply:
                closure = Closure(step.function, (), self) if kind is Call else values[step.callee]
                given = [values[i] for i in step.args]
                if type(closure) is not Closure or closure.machine is not self:  # of Python, or of another program
                    to = step.callee if step.to is None else step.to
                    values[to] = closure(*given)
                    if step.to is None:
                        steps, at = (Give(to),), 0
                    continue
                callee = self._functions[closure.function]
                entered = self._entered(callee, given, closure)
                if step.to is not None:
                    if len(waiting) >= MAX_CALLS:
                        raise RecursionError(f"{callee.name}: expected at most {MAX_CALLS} nested calls, found more")
                    waiting.append((function, values, at, step.to))
                function, values, at = callee, entered, 0
                steps = function.steps
            elif kind is Give:
                result = values[step.value]
                if not waiting:
                    return result
                function, values, at, to = waiting.pop()
                steps = function.steps
                values[to] = result
            elif kind is Unless:
                if not values[step.value]:
                    at = step.target
            elif kind is Jump:
                at = step.target
            elif kind is Fail:
                raise NoClause(f"{function.name}: {step.message}")
            else:
                self._simple(step, values)

    @staticmethod
    def _entered(function: Function, args: Sequence[Any], closure: Closure) -> list[Any]:
        """The registers of a function that is called."""
        filled = [*args, *closure.captures, closure]
        return filled + [None] * (function.registers - len(filled))

    def _simple(self, step: Any, values: list[Any]) -> None:
        """A step that changes registers and nothing else, of the less frequent kinds."""
        if isinstance(step, Constant):
            values[step.to] = step.value
        elif isinstance(step, Move):
            values[step.to] = values[step.value]
        elif isinstance(step, Bind):
            values[step.to] = Closure(step.function, tuple(values[i] for i in step.captures), self)
        elif isinstance(step, Refer):
            values[step.to] = RefValue(values[step.value])
        elif isinstance(step, Read):
            values[step.to] = values[step.ref].value
        else:
            assert isinstance(step, Write)
            values[step.ref].value = values[step.value]
            values[step.to] = []
