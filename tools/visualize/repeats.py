"""Repeated layers, drawn once: of boxes that recur in the same order, the first occurrence represents all."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from relayc.tools.tables import common_beginning
from relayc.tools.visualize.boxes import Arrow, Box, Drawing

FEWEST = 3
"""The least number of boxes in a repetition that is drawn once."""


def collapsed(drawing: Drawing) -> Drawing:
    """A drawing without repetitions, the longest removed first; a group around the first occurrence shows their number."""
    # The first repetition that leaves out most boxes.
    while (found := max(_repetitions(drawing.boxes), key=lambda found: found[1] * (found[2] - 1), default=None)) is not None:
        drawing = _collapse(drawing, *found)
    return drawing


def _repetitions(boxes: Sequence[Box]) -> Iterator[tuple[int, int, int]]:
    """Boxes that are followed by equal ones: the first, their number, and the number of occurrences."""
    numbers: dict[object, int] = {}
    words = np.array([numbers.setdefault(_word(box), len(numbers)) for box in boxes])
    for period in range(FEWEST, len(words) // 2 + 1):
        equal = np.concatenate(([0], (words[:-period] == words[period:]).astype(np.int8), [0]))
        edges = np.flatnonzero(np.diff(equal))
        for begin, end in zip(edges[::2], edges[1::2], strict=True):
            times = (end - begin) // period + 1
            if times > 1:
                yield int(begin), period, int(times)


def _word(box: Box) -> object:
    """The key by which boxes are equal: name, kind, lines and the labels of the groups. The last line of a timed kernel is its time."""
    lines = box.lines[:-1] if box.kind == "kernel" and box.seconds is not None else box.lines
    return box.name, box.kind, lines, tuple(label for _, label in box.groups)


def _collapse(drawing: Drawing, first: int, period: int, times: int) -> Drawing:
    end = first + period * times

    def place(number: int) -> int:
        if number < first:
            return number
        return first + (number - first) % period if number < end else number - period * (times - 1)

    inside = drawing.boxes[first : first + period]
    group = (-1 - first - period, f"{times} times")
    outer = common_beginning(box.groups for box in inside)
    boxes = []
    for k, box in enumerate(inside):
        alike = [drawing.boxes[first + k + period * i] for i in range(times)]
        sources = tuple(dict.fromkeys(name for one in alike for name in one.sources))
        groups = (*box.groups[:outer], group, *box.groups[outer:])
        boxes.append(replace(box, groups=groups, sources=sources, seconds=_sum([one.seconds for one in alike])))
    arrows = []
    for arrow in drawing.arrows:
        source, target = place(arrow.source), place(arrow.target)
        is_inside = first <= arrow.source and arrow.target < end
        is_next = is_inside and (arrow.source - first) // period != (arrow.target - first) // period
        arrows.append(Arrow(source, target, arrow.text, arrow.is_back or is_next))
    kept = [*drawing.boxes[:first], *boxes, *drawing.boxes[end:]]
    return Drawing(kept, list(dict.fromkeys(arrows)))


def merged(drawing: Drawing) -> Drawing:
    """A drawing with one box for each of the outermost groups: what large programs are drawn as, of which groups are too many frames."""
    numbers: dict[object, int] = {}
    members: list[list[Box]] = []
    places = []
    for box in drawing.boxes:
        number = numbers.setdefault(box.groups[0] if box.groups else len(members), len(members))
        if number == len(members):
            members.append([])
        members[number].append(box)
        places.append(number)
    arrows = [Arrow(places[a.source], places[a.target], a.text, a.is_back) for a in drawing.arrows if places[a.source] != places[a.target]]
    return Drawing([_one(boxes) for boxes in members], list(dict.fromkeys(arrows)))


def _one(boxes: Sequence[Box]) -> Box:
    """A box that stands for several."""
    names = [box.name for box in boxes]
    more = f" + {len(names) - 4} more" if len(names) > 5 else ""
    sources = tuple(dict.fromkeys(name for box in boxes for name in box.sources))
    name = " + ".join(names[: 4 if more else 5]) + more
    seconds = max((box.seconds for box in boxes if box.seconds is not None), default=None)  # each is that of their kernel
    return replace(boxes[0], name=name, lines=boxes[-1].lines[-1:], groups=(), sources=sources, seconds=seconds)


def _sum(seconds: Sequence[float | None]) -> float | None:
    known = [s for s in seconds if s is not None]
    return sum(known) if known else None
