"""Kernels that no strategy is made for, spaces, and measurements that are made up: for tests of the tuner."""

from relayc import te
from relayc.pipelines.driver.tuning_space import TuningSpace
from relayc.tools.timing import Comparison
from relayc.tune.process import Measurer
from relayc.tune.worker import DEFAULT, Measured


def space(strategy="s", kernel="k", **values):
    """A space whose first values are chosen."""
    chosen = {name: options[0] for name, options in values.items()}
    return TuningSpace(kernel, (), strategy, chosen, {name: tuple(sorted(options)) for name, options in values.items()})


def asker(*spaces):
    by_name = {one.strategy: one for one in spaces}

    def ask(strategy, numbers):
        known = by_name[strategy]
        return TuningSpace(known.kernel, (), strategy, {**known.chosen, **numbers}, known.values)

    return ask


def comparison(base, other):
    return Comparison(base, other, base / other, base / other * 0.999, base / other * 1.001, 8)


class Fake(Measurer):
    """Measures by a function of the numbers, which gives seconds, or an outcome."""

    def __init__(self, seconds, default=1.0):
        self._seconds, self._default, self.asked = seconds, default, []

    def of(self, task, candidate):
        if candidate == DEFAULT:
            return self._default
        return self._seconds(task, candidate)

    def measure(self, task, base, candidate, seconds):
        self.asked.append((task.name, str(candidate)))
        found = self.of(task, candidate)
        if isinstance(found, str):
            return Measured(found, None, f"it was {found}")
        return Measured("measured", comparison(self.of(task, base), found))

    def close(self):
        pass


def heat(n=40, steps=3):
    """Steps of the heat equation; each grid is 2 smaller than the one before."""
    grid = first = te.placeholder((n, n), name="first")
    for number in range(1, steps + 1):

        def step(i, j, x=grid):
            return x[i + 1, j + 1] + 0.2 * (x[i, j + 1] + x[i + 2, j + 1] + x[i + 1, j] + x[i + 1, j + 2] - 4.0 * x[i + 1, j + 1])

        grid = te.compute((n - 2 * number, n - 2 * number), step, name=f"step{number}")
    return te.create_prim_func([first, grid])


def argmax(rows=6, columns=300):
    x = te.placeholder((rows, columns), name="x")
    k = te.reduce_axis((0, columns), name="k")

    def larger(a, b):
        first = te.any(a[1] > b[1], te.all(a[1] == b[1], a[0] < b[0]))
        return te.if_then_else(first, a[0], b[0]), te.if_then_else(first, a[1], b[1])

    reducer = te.comm_reducer(larger, lambda index, value: (te.const(-1, index), te.min_value(value)), name="argmax")
    where, largest = te.compute((rows,), lambda i: reducer((k, x[i, k]), axis=k), name="largest")
    return te.create_prim_func([x, where, largest])


def product(rows=20, columns=70, depth=48):
    a, b = te.placeholder((rows, depth), name="a"), te.placeholder((depth, columns), name="b")
    bias = te.placeholder((columns,), name="bias")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    d = te.compute((rows, columns), lambda i, j: te.max(c[i, j] + bias[j], 0.0), name="d")
    return te.create_prim_func([a, b, bias, d])


def product_text(rows, depth, columns):
    """x W in f32 as a function @product of the te stage."""
    x, w, y = (f"tensor<{m}x{n}xf32>" for m, n in ((rows, depth), (depth, columns), (rows, columns)))
    return f"""
func.func @product(%x: {x}, %w: {w}) -> {y} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {y}
  %init = linalg.fill ins(%zero : f32) outs(%empty : {y}) -> {y}
  %0 = linalg.matmul ins(%x, %w : {x}, {w}) outs(%init : {y}) -> {y}
  return %0 : {y}
}}
"""
