"""Random programs: nested branches, loops and calls that pass values around in any way give what Python gives."""

from collections.abc import Callable

import numpy as np
import pytest
from programs import Programs, condition, pointwise

V, I = "tensor<4xi64>", "tensor<i64>"  # noqa: E741 (the type of a scalar in the texts)
KERNELS = {
    "add": ("%r = arith.addi %0, %1 : i64", 2, lambda x, y: x + y),
    "xor": ("%r = arith.xori %0, %1 : i64", 2, lambda x, y: x ^ y),
    "triple": ("%t = arith.constant 3 : i64\n%r = arith.muli %0, %t : i64", 1, lambda x: x * 3),
    "next": ("%t = arith.constant 5 : i64\n%r = arith.addi %0, %t : i64", 1, lambda x: x + 5),
}
TEXT = "".join(pointwise(name, body, *["4xi64"] * (count + 1)) for name, (body, count, _) in KERNELS.items())
TEXT += pointwise("zero", "%r = arith.constant 0 : i64", "i64")
TEXT += pointwise("inc", "%c = arith.constant 1 : i64\n%r = arith.addi %0, %c : i64", "i64", "i64")
TEXT += pointwise("few", "%n = arith.constant 3 : i64\n%c = arith.cmpi slt, %0, %n : i64\n%r = arith.extui %c : i1 to i8", "i64", "i8")
TEXT += pointwise("odd", "%c = arith.trunci %0 : i64 to i1\n%r = arith.extui %c : i1 to i8", "i64", "i8")

Values = dict[str, np.ndarray]
Run = Callable[[Values], None]


class Writer:
    """Writes a random program, and what Python does in its place."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.count = 0
        self.programs: dict[str, tuple[int, Callable]] = {}

    def new(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def pick(self, values: list[str]) -> str:
        """One of the values, more often one of the last."""
        return values[len(values) - 1 - int(len(values) * self.random.random() ** 2)]

    def function(self, name: str, inputs: int, outputs: int, private: bool) -> str:
        arguments = [self.new() for _ in range(inputs)]
        counter = self.new()
        lines, run, scope = self.block([*arguments, "%w"], [counter], depth=0)
        results = [scope[-1], *(self.pick(scope) for _ in range(outputs - 1))]

        def call(*arrays: np.ndarray) -> list[np.ndarray]:
            values = dict(zip([*arguments, "%w", counter], [*arrays[:-1], WEIGHT, arrays[-1]], strict=True))
            run(values)
            return [values[r] for r in results]

        self.programs[name] = (inputs, call)
        head = ", ".join([*(f"{a}: {V}" for a in arguments), f"{counter}: {I}"])
        given = ", ".join([V] * outputs)
        kind = ("private ", " attributes {relay.program}") if private else ("", "")
        weight = f'%w = "relay.constant"() {{value = "w", shape = array<i64: 4>, dtype = "int64"}} : () -> {V}'
        body = "\n".join([weight, *lines])
        return f"func.func {kind[0]}@{name}({head}) -> ({given}){kind[1]} {{\n{body}\nreturn {', '.join(results)} : {given}\n}}\n"

    def block(self, scope: list[str], counters: list[str], depth: int) -> tuple[list[str], Run, list[str]]:
        """Operations on values of a scope: their text, what they do, and the scope after them."""
        scope, lines, runs, known = list(scope), [], [], len(scope)
        kinds = ["if", "while"] * (depth < 2) + ["program"] * (depth < 2 and len(self.programs) > 0) + ["kernel"] * 2
        for _ in range(self.random.integers(2, 7 - depth)):
            text, run, results = getattr(self, str(self.random.choice(kinds)))(scope, counters, depth)
            lines += text
            runs.append(run)
            scope += results

        # A value that depends on much that the block has made, so that little of it goes unnoticed; the rest may be over by now.
        total = self.pick(scope)
        for value in [v for v in scope[known:] if self.random.integers(2)]:
            for name, operands in (("triple", [total]), ("xor", [None, value])):
                text, run, [total] = self.call(name, [total if o is None else o for o in operands])
                lines += text
                runs.append(run)
        scope.append(total)

        def run_all(values: Values) -> None:
            for one in runs:
                one(values)

        return lines, run_all, scope

    def kernel(self, scope: list[str], counters: list[str], depth: int) -> tuple[list[str], Run, list[str]]:
        name = str(self.random.choice(list(KERNELS)))
        return self.call(name, [self.pick(scope) for _ in range(KERNELS[name][1])])

    def call(self, name: str, operands: list[str]) -> tuple[list[str], Run, list[str]]:
        _, count, function = KERNELS[name]
        result = self.new()

        def run(values: Values) -> None:
            values[result] = function(*[values[o] for o in operands])

        return [f"{result} = func.call @{name}({', '.join(operands)}) : ({', '.join([V] * count)}) -> {V}"], run, [result]

    def program(self, scope: list[str], counters: list[str], depth: int) -> tuple[list[str], Run, list[str]]:
        name = self.pick(list(self.programs))
        count, function = self.programs[name]
        operands, counter, result = [self.pick(scope) for _ in range(count)], self.pick(counters), self.new()

        def run(values: Values) -> None:
            values[f"{result}#0"], values[f"{result}#1"] = function(*[values[o] for o in (*operands, counter)])

        types = ", ".join([*[V] * count, I])
        line = f"{result}:2 = func.call @{name}({', '.join([*operands, counter])}) : ({types}) -> ({V}, {V})"
        return [line], run, [f"{result}#0", f"{result}#1"]

    def results(self, name: str, count: int) -> list[str]:
        return [f"{name}#{i}" for i in range(count)]

    def test(self, kernel: str, counter: str) -> tuple[list[str], str]:
        flag, bit = self.new(), self.new()
        return [f"{flag} = func.call @{kernel}({counter}) : ({I}) -> tensor<i8>", condition(flag[1:], bit[1:])], bit

    def __getattr__(self, name: str) -> Callable:
        return {"if": self.branch, "while": self.loop}[name]

    def branch(self, scope: list[str], counters: list[str], depth: int) -> tuple[list[str], Run, list[str]]:
        counter, name, count = self.pick(counters), self.new(), int(self.random.integers(1, 4))
        text, bit = self.test("odd", counter)
        sides = [self.block(scope, counters, depth + 1) for _ in range(2)]
        given = [[self.pick(side[2]) for _ in range(count)] for side in sides]
        types = ", ".join([V] * count)
        text.append(f"{name}:{count} = scf.if {bit} -> ({types}) {{")
        text += [*sides[0][0], f"scf.yield {', '.join(given[0])} : {types}", "} else {"]
        text += [*sides[1][0], f"scf.yield {', '.join(given[1])} : {types}", "}"]
        results = self.results(name, count)

        def run(values: Values) -> None:
            side = 0 if values[counter] % 2 else 1
            sides[side][1](values)
            values.update(zip(results, [values[v] for v in given[side]], strict=True))

        return text, run, results

    def loop(self, scope: list[str], counters: list[str], depth: int) -> tuple[list[str], Run, list[str]]:
        count, name = int(self.random.integers(1, 4)), self.new()
        zero, counter, following = self.new(), self.new(), self.new()
        inits, carried = [self.pick(scope) for _ in range(count)], [self.new() for _ in range(count)]
        # The block of the condition has arguments of the same names.
        more, bit = self.test("few", counter)
        lines, body, inner = self.block([*scope, *carried], [*counters, counter], depth + 1)
        given = [self.pick(inner if self.random.integers(3) else carried) for _ in range(count)]
        types = ", ".join([I, *[V] * count])
        starts = ", ".join(f"{a} = {b}" for a, b in zip([counter, *carried], [zero, *inits], strict=True))
        arguments = ", ".join(f"{a}: {t}" for a, t in zip([counter, *carried], [I, *[V] * count], strict=True))
        step = [f"{following} = func.call @inc({counter}) : ({I}) -> {I}"]
        lines = [*step, *lines] if self.random.integers(2) else [*lines, *step]
        text = [f"{zero} = func.call @zero() : () -> {I}", f"{name}:{count + 1} = scf.while ({starts}) : ({types}) -> ({types}) {{"]
        text += [*more, f"scf.condition({bit}) {', '.join([counter, *carried])} : {types}", "} do {", f"^bb0({arguments}):"]
        text += [*lines, f"scf.yield {', '.join([following, *given])} : {types}", "}"]
        results = [f"{name}#{i + 1}" for i in range(count)]

        def run(values: Values) -> None:
            state = [values[v] for v in inits]
            for i in range(3):
                values.update(zip([counter, *carried], [np.int64(i), *state], strict=True))
                body(values)
                state = [values[v] for v in given]
            values.update(zip(results, state, strict=True))

        return text, run, results


WEIGHT = np.array([7, -2, 11, 4], np.int64)


@pytest.mark.parametrize("seed", range(24))
def test_a_random_program_gives_what_python_gives(seed):
    writer = Writer(seed)
    text = TEXT + writer.function("f", 2, 2, True) + writer.function("main", 2, 3, False)
    programs = Programs(text, {"w": WEIGHT})
    x, y = np.arange(4), np.array([5, -1, 8, 2])
    for counter in (0, 1):
        start = np.array(counter, np.int64)
        with np.errstate(over="ignore"):
            expected = writer.programs["main"][1](x, y, start)
        np.testing.assert_array_equal(programs("main", x, y, start), expected)
        np.testing.assert_array_equal(programs.replay("main", x, y, start), expected)
