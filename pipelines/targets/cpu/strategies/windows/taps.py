"""Code that strategies of windows share: the padding of a window, its taps, and the epilogue on its accumulators."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from relayc.dialects.mlir import ir
from relayc.pipelines.emission import emit
from relayc.pipelines.emission.index import Index, Var, linearize
from relayc.pipelines.te.read.graph import Node
from relayc.pipelines.te.read.window import Window
from relayc.pipelines.tir.values import nest
from relayc.pipelines.tir.values.evaluator import Evaluator
from relayc.symbolic import Size

Bounds = tuple["ir.Value | Size", "ir.Value | Size"]
"""First and one-past-last step of a loop."""


def padding_vector(window: Window, lanes: int) -> ir.Value:
    """A vector of the padding value of the input; of zeros if there is none."""
    element, value = window.data.element, window.pad_value
    return emit.broadcast(emit.zero(element) if value is None else emit.constant(value.attributes["value"], element), lanes)


def add_rows_of_taps(
    window: Window,
    evaluator: Evaluator,
    inside: Bounds | None,
    sums: Sequence[ir.Value],
    add: Callable[[Index, bool, list[ir.Value]], list[ir.Value]],
) -> list[ir.Value]:
    """Accumulates all taps in loops over their rows: rows inside the input (None: all) and, if the padding counts, rows before and after.

    `add(tap, is_outside, sums)` accumulates a row of taps.
    """
    taps, sums = window.rows.taps, list(sums)
    low, high = inside or (0, taps)
    loops = [(low, high, False)]
    if inside is not None and window.padding_counts:
        low = emit.smaller(low, taps)
        high = emit.arith("maxsi", high, low)
        loops = [(0, low, True), (high, taps, True), (low, high, False)]
    for start, end, is_outside in loops:
        with nest.carrying(start, end, evaluator, sums, below=taps, name="k") as (tap, loop):
            emit.yield_values(add(tap, is_outside, list(loop.inner_iter_args)))
        sums = list(loop.results)
    return sums


Operand: TypeAlias = Callable[[int, Callable[[], ir.Value]], ir.Value]
"""Gives an input of a reduction, by its position and a function that evaluates it."""


def other_inputs(window: Window, evaluator: Evaluator, loops: Mapping[Var, Index], operand: Operand) -> dict[int, ir.Value]:
    """What is combined with an element of the data at a tap, given by `loops`, by positions of inputs."""
    point = window.loop_point(loops)

    def read(node: Node, amap: ir.AffineMap) -> ir.Value:
        return evaluator.at(node, evaluator.apply(amap, point) if node.shape else [])

    return {
        position: operand(position, partial(read, node, amap))
        for position, (node, amap) in enumerate(zip(window.structured.inputs, window.structured.maps, strict=True))
        if position != window.position and node.kind != "empty"
    }


def at_tap(window: Window, evaluator: Evaluator, loops: Mapping[Var, Index], operand: Operand) -> Callable[[ir.Value, ir.Value], ir.Value]:
    """The reduction step at a tap, given by `loops`: a function of an element of the data and the accumulator."""
    structured, point = window.structured, window.loop_point(loops)
    others = other_inputs(window, evaluator, loops, operand)

    def add(element: ir.Value, total: ir.Value) -> ir.Value:
        return evaluator.compute(structured, point, {len(structured.inputs): total, window.position: element, **others})[0]

    return add


def store_result(
    window: Window, evaluator: Evaluator, output: ir.Value, point: Mapping[Var, Index], row: Index, column: Index, sums: ir.Value
) -> None:
    """Evaluates the epilogue on the accumulators at an output row and column and stores the result."""
    at = dict(point)
    for axis, index in ((window.columns, column), (window.rows, row)):
        if axis.output is not None:
            at[axis.output] = index
    where = window.output_at(at)
    evaluator.remember(window.node, where, sums)
    evaluator.store(evaluator.at(window.root, window.root_at(where)), output, linearize(where, window.node.shape))
