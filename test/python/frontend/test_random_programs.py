"""Random programs with branches, loops, calls, recursion and packed functions, against the same program in numpy.

A program is a tree of tuples (kind, operands...); `evaluate` computes it, `Builder` builds it. Every one is compiled without optimisation,
with all of it, and with calls that stay calls.
"""

import random

import numpy as np
import pytest

import relayc
from relayc import PassContext, Program, TensorType

VECTOR, COUNT = TensorType((6,), "float32"), TensorType((), "int32")
SETTINGS = [(0, {}), (3, {}), (3, {"relay.Inline.max_operations": 1})]
FUNCTIONS = (("tanh", ("add", ("value", 0), ("value", 0))), ("product", ("value", 0), ("reverse", ("value", 0))))
HALF, TENTH = np.float32(0.5), np.float32(0.1)


def scale(x, n, out):
    out[...] = x * HALF + n


def grow(choose: random.Random, depth: int, values: int) -> tuple:
    """A random tree of a vector, of `values` vectors that it may read."""

    def part(less: int = 1, more: int = 0) -> tuple:
        return grow(choose, depth - less, values + more)

    makers = {
        "value": (3, lambda: (choose.randrange(values),)),
        "add": (2, lambda: (part(), part())),
        "product": (2, lambda: (part(), part())),
        "tanh": (2, lambda: (part(),)),
        "softmax": (1, lambda: (part(),)),
        "reverse": (1, lambda: (part(),)),
        "halves": (1, lambda: (part(), part())),
        "if": (2, lambda: (choose.randrange(-2, 4), part(), part())),
        "loop": (2, lambda: (choose.randrange(4), part(2), part(2), part(2, 2), part(2, 2), choose.randrange(2))),
        "packed": (1, lambda: (part(),)),
        "call": (1, lambda: (choose.randrange(len(FUNCTIONS)), part())),
        "recursion": (1, lambda: (choose.randrange(4), part())),
    }
    kind = "value" if depth <= 0 else choose.choices(list(makers), [weight for weight, _ in makers.values()])[0]
    return (kind, *makers[kind][1]())


def evaluate(tree: tuple, values: list, n: int) -> np.ndarray:
    kind, *parts = tree
    compute = {
        "value": lambda i: values[i],
        "add": lambda a, b: of(a) + of(b),
        "product": lambda a, b: of(a) * of(b) * HALF,
        "tanh": lambda a: np.tanh(of(a)),
        "softmax": lambda a: np.exp(of(a) - of(a).max()) / np.exp(of(a) - of(a).max()).sum(),
        "reverse": lambda a: of(a)[::-1],
        "halves": lambda a, b: np.concatenate([of(a)[:3], of(b)[3:]]),
        "if": lambda limit, a, b: of(a if n > limit else b),
        "packed": lambda a: of(a) * HALF + n,
        "call": lambda i, a: evaluate(FUNCTIONS[i], [of(a)], n),
    }

    def of(part):
        return evaluate(part, values, n)

    if kind == "loop":
        most, *starts, first, second, chosen = parts
        carried = [of(start) for start in starts]
        for _ in range(min(n, most)):
            carried = [evaluate(step, values + carried, n) for step in (first, second)]
        return carried[chosen]
    if kind == "recursion":
        found = of(parts[1])
        for i in range(parts[0], 0, -1):
            found = np.tanh(found) + TENTH * np.float32(i)
        return found
    return compute[kind](*parts)


class Builder:
    """Builds trees into the functions of a program."""

    def __init__(self, trees: list) -> None:
        self.program = program = Program()
        for i, tree in enumerate(FUNCTIONS):
            program.function(lambda x, tree=tree: self.build(tree, [x], None), name=f"f{i}", private=True, x=VECTOR)
        program.function(self.recursion, private=True, returns=VECTOR, n=COUNT, x=VECTOR)
        program.function(lambda x, y, n: tuple(self.build(tree, [x, y], n) for tree in trees), name="main", x=VECTOR, y=VECTOR, n=COUNT)

    def recursion(self, n, x):
        op = self.program.op

        def nested():
            return self.program.call("recursion", n - 1, op.tanh(x) + op.cast(n, dtype="float32") * 0.1)

        return self.program.if_else(n > 0, nested, lambda: x)

    def build(self, tree, values, n):
        kind, *parts = tree
        program, op = self.program, self.program.op

        def of(part):
            return self.build(part, values, n)

        def loop(most, first, second, *rest):
            *steps, chosen = rest

            def body(i, carried):
                return i + 1, tuple(self.build(step, values + list(carried), n) for step in steps)

            goes_on = lambda i, _: op.logical_and(i < n, i < most)  # noqa: E731 (an argument, not a definition)
            return program.while_loop(goes_on, body, (0, (of(first), of(second))))[1][chosen]

        makers = {
            "value": lambda i: values[i],
            "add": lambda a, b: of(a) + of(b),
            "product": lambda a, b: of(a) * of(b) * 0.5,
            "tanh": lambda a: op.tanh(of(a)),
            "softmax": lambda a: op.nn.softmax(of(a)),
            "reverse": lambda a: op.reverse(of(a), axis=0),
            "halves": lambda a, b: op.concatenate(op.strided_slice(of(a), begin=[0], end=[3]), op.split(of(b), indices_or_sections=2)[1]),
            "if": lambda limit, a, b: program.if_else(n > limit, lambda: of(a), lambda: of(b)),
            "loop": loop,
            "packed": lambda a: program.call_packed("test.random.scale", [of(a), n], VECTOR),
            "call": lambda i, a: program.call(f"f{i}", of(a)),
            "recursion": lambda count, a: program.call("recursion", count, of(a)),
        }
        return makers[kind](*parts)


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_agree_with_numpy(seed):
    relayc.register_func("test.random.scale", scale, override=True)
    choose = random.Random(seed)
    trees = [grow(choose, 5, 2) for _ in range(3)]
    module = Builder(trees).program.module
    for level, config in SETTINGS:
        with PassContext(level, config=config):
            compiled = relayc.compile(module())
        for n in (-1, 0, 2, 5):
            x, y = np.random.default_rng([seed, n + 1]).standard_normal((2, 6)).astype(np.float32)
            for found, tree in zip(compiled["main"](x, y, np.int32(n)), trees, strict=True):
                # A few dozen operations in f32, some of them multiplied with each other.
                np.testing.assert_allclose(found, evaluate(tree, [x, y], n), rtol=1e-4, atol=1e-5)
        assert compiled.profile([x, y, np.int32(2)], repeat=1).rows
