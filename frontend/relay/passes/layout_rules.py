"""In which layouts operators can have their operands and results: Relay's FInferCorrectLayout.

A rule is called twice for a call: with the layouts that its operands have, and then with those that they would have in their place.
"""

from collections.abc import Callable, Sequence
from typing import Any

from relayc.dialects.relay.errors import check
from relayc.dialects.relay.facts import Pattern
from relayc.frontend.relay.ast.attrs import Attrs
from relayc.frontend.relay.op.registered import attribute
from relayc.frontend.relay.op.table import RENAMED, signature
from relayc.frontend.relay.passes.layouts import Layout, layout, transformed_like, with_ones

KEY = "FInferCorrectLayout"
"""The attribute of an operator that is its rule."""
_C = Layout("C")


class InferCorrectLayoutOutput:
    """The layouts of operands (of tuple fields one by one) and results, None if unknown, and the attributes for them."""

    def __init__(self, input_layouts: Sequence[Any], output_layouts: Sequence[Any], new_attrs: Any) -> None:
        self.input_layouts, self.output_layouts, self.new_attrs = list(input_layouts), list(output_layouts), new_attrs


Layouts = Sequence[Layout | None]
Rule = Callable[[Any, "Layouts | None", Layouts, Sequence[Any]], InferCorrectLayoutOutput]
"""(attributes, layouts of operands after the change, before the change, types of operands before it) -> what the call can have."""


def rule_of(name: str) -> Rule | None:
    """The rule of an operator; None if its operands keep their layouts."""
    found: Rule | None = attribute(name, KEY) or _RULES.get(RENAMED.get(name, name))
    cls = signature(name).cls if found is None else None
    if cls is not None and cls.pattern is Pattern.ELEMWISE and len(cls.operand_names) == 1:
        return elementwise
    return broadcast if cls is not None and cls.pattern is Pattern.BROADCAST and len(cls.operand_names) == 2 else found


def _with(attrs: Any, **values: Any) -> Attrs:
    return Attrs({**attrs, **values}, attrs.type_key)


def _same(found: Layout | None, attrs: Any, operands: int = 1, results: int = 1, others: int = 0) -> InferCorrectLayoutOutput:
    return InferCorrectLayoutOutput([found] * operands + [_C] * others, [found] * results, attrs)


def _first(layouts: Layouts) -> Layout | None:
    return next((found for found in layouts if found is not None), None)


def _moved(axis: int, old: Layout | None, new: Layout | None) -> int | None:
    """The position of an axis in a new layout; None if it has none."""
    if old is None or new is None or not -len(old) <= axis < len(old):
        return None
    found = new.index(old.names[axis])
    return found if found >= 0 else None


def _unsplit(axis: int, old: Layout | None, new: Layout | None) -> int | None:
    """The position of an axis in a new layout; None if it has none, or is in other parts there."""
    found = _moved(axis, old, new)
    if found is None or old is None or new is None:
        return None
    return found if new.factor(old.names[axis]) == old.factor(old.names[axis]) else None


def elementwise(attrs: Any, new: Layouts | None, old: Layouts, types: Sequence[Any]) -> InferCorrectLayoutOutput:
    """Operators that take any layout."""
    return _same(new[0] if new else _first(old), attrs, len(old))


def broadcast(attrs: Any, new: Layouts | None, old: Layouts, types: Sequence[Any]) -> InferCorrectLayoutOutput:
    """Operators on two tensors: what became of the larger one's layout becomes of the smaller one's."""
    ranks, found = [len(type_.shape) for type_ in types[:2]], list(old[:2])
    nothing = _same(None, attrs, 2)
    result = found[0 if ranks[0] >= ranks[1] else 1]
    if found[0] is None or found[1] is None:
        known = 1 if found[0] is None else 0
        whole = result = found[known]
        if whole is None or ranks[known] < ranks[1 - known]:
            return nothing
        found[1 - known] = whole.part(ranks[known] - ranks[1 - known])
    if not new:
        return InferCorrectLayoutOutput(found, [result], attrs)
    after = [layout_ or Layout("") for layout_ in new[:2]]
    large = 0 if after[0].rank >= after[1].rank else 1
    before = found[1 - large], found[large]
    target = transformed_like(before[0] or Layout(""), before[1] or Layout(""), after[large])
    if target is None:
        return nothing
    found[1 - large] = with_ones(target, before[0] or Layout(""), types[1 - large].shape)
    found[large] = after[large]
    return InferCorrectLayoutOutput(found, [found[large]], attrs)


def _convolution(others: int = 0, offsets: bool = False) -> Rule:
    def rule(attrs: Any, new: Layouts | None, old: Layouts, types: Sequence[Any]) -> InferCorrectLayoutOutput:
        data, kernel = layout(attrs["data_layout"]), layout(attrs["kernel_layout"])
        inputs = [data, *([data] if offsets else []), kernel, *[_C] * others]
        return InferCorrectLayoutOutput(inputs, [layout(attrs.get("out_layout")) or data], attrs)

    return rule


def _pools(attrs: Any, new: Layout, old: Layout | None) -> bool:
    return not attrs.get("out_layout")


def _following(follows: Callable[[Any, Layout, Layout | None], bool], others: int = 0) -> Rule:
    """Operators whose layout is the layout of their operand, if `follows` holds."""

    def rule(attrs: Any, new: Layouts | None, old: Layouts, types: Sequence[Any]) -> InferCorrectLayoutOutput:
        if new and new[0] is not None and follows(attrs, new[0], old[0]):
            attrs = _with(attrs, layout=new[0].text)
        return _same(layout(attrs["layout"]), attrs, others=others)

    return rule


def _upsamples(attrs: Any, new: Layout, old: Layout | None) -> bool:
    own = Layout(attrs["layout"])
    return all(new.index(axis) == own.index(axis) and new.index(axis.lower()) < 0 for axis in "DHW")


def _resizes(attrs: Any, new: Layout, old: Layout | None) -> bool:
    return new != old and Layout(attrs["layout"]) == old and len(new) == len(old)


def _along_axis(results: int = 1, others: int = 0, of_operands: int = 0) -> Rule:
    """Operators along one axis: with `others` operands, and `of_operands` results, that have the size of the axis."""

    def rule(attrs: Any, new: Layouts | None, old: Layouts, types: Sequence[Any]) -> InferCorrectLayoutOutput:
        found = old[0]
        if new:
            axis, found = _unsplit(attrs["axis"], old[0], new[0]), new[0]
            found = None if axis is None else found
            attrs = _with(attrs, axis=axis)
        outputs = results if "ret_type" not in attrs or attrs["ret_type"] == "both" else 1
        return InferCorrectLayoutOutput([found, *[_C] * others], [*[found] * outputs, *[_C] * of_operands], attrs)

    return rule


def _along_axes(attrs: Any, new: Layouts | None, old: Layouts, types: Sequence[Any]) -> InferCorrectLayoutOutput:
    if not new:
        return _same(old[0], attrs)
    axes = [_unsplit(axis, old[0], new[0]) for axis in attrs["axis"]]
    return _same(None if None in axes else new[0], _with(attrs, axis=axes))


def _concatenate(attrs: Any, new: Layouts | None, old: Layouts, types: Sequence[Any]) -> InferCorrectLayoutOutput:
    count = len(types[0].fields)
    found, others = _first(old[:count]), len(old) - count
    if new and all(each == new[0] for each in new[:count]):
        axis = _moved(attrs["axis"], old[0], new[0])
        return _same(None if axis is None else new[0], _with(attrs, axis=axis), count, others=others)
    axis = attrs["axis"]
    is_whole = found is not None and -len(found) <= axis < len(found) and found.names[axis].isupper()
    return _same(found if is_whole else None, attrs, count, others=others)


def _split(attrs: Any, new: Layouts | None, old: Layouts, types: Sequence[Any]) -> InferCorrectLayoutOutput:
    sections, found = attrs["indices_or_sections"], old[0]
    count = len(sections) + 1 if isinstance(sections, tuple) else sections
    if new and new[0] != found:
        axis = _moved(attrs["axis"], old[0], new[0])
        if axis is None or new[0] is None or old[0] is None:
            return _same(None, attrs, results=count)
        factor, found = new[0].factor(old[0].names[attrs["axis"]]), new[0]
        if factor >= 2:
            size = types[0].shape[attrs["axis"]]
            if any(place % factor for place in sections) if isinstance(sections, tuple) else size % (factor * sections):
                return _same(old[0], attrs, results=count)
            sections = tuple(place // factor for place in sections) if isinstance(sections, tuple) else sections
        attrs = _with(attrs, axis=axis, indices_or_sections=sections)
    return _same(found, attrs, results=count)


def _squeeze(attrs: Any, new: Layouts | None, old: Layouts, types: Sequence[Any]) -> InferCorrectLayoutOutput:
    found, shape = (new[0] if new else old[0]), types[0].shape
    if found is None or old[0] is None:
        return _same(None, attrs)
    axes: list[Any] = [i for i, size in enumerate(shape) if size == 1] if attrs["axis"] is None else list(attrs["axis"])
    if new:
        axes = [_moved(axis, old[0], found) for axis in axes]
        if None in axes:
            return _same(None, attrs)
        attrs = _with(attrs, axis=axes)
    gone = {axis % len(found) for axis in axes}
    return InferCorrectLayoutOutput([found], [Layout.of([a for i, a in enumerate(found.axes) if i not in gone])], attrs)


def _transpose(attrs: Any, new: Layouts | None, old: Layouts, types: Sequence[Any]) -> InferCorrectLayoutOutput:
    found = old[0]
    if found is None:
        return _same(None, attrs)
    axes = [axis % len(found) for axis in attrs["axes"] or range(len(found) - 1, -1, -1)]
    if new and new[0] is not None:
        moved = [_moved(axis, found, new[0]) for axis in axes]
        if None not in moved and len(moved) == len(new[0]):
            axes, found = [axis for axis in moved if axis is not None], new[0]
    attrs = _with(attrs, axes=axes)
    return InferCorrectLayoutOutput([found], [Layout.of([found.axes[axis] for axis in axes])], attrs)


def _slice_like(attrs: Any, new: Layouts | None, old: Layouts, types: Sequence[Any]) -> InferCorrectLayoutOutput:
    if new and new[0] == new[1] and old[0] == old[1] and attrs["axes"]:
        axes = [_moved(axis, old[0], new[0]) for axis in attrs["axes"]]
        if None not in axes:
            return _same(new[0], _with(attrs, axes=axes), 2)
    return InferCorrectLayoutOutput(old, [old[1]], attrs)


def _strided_slice(attrs: Any, new: Layouts | None, old: Layouts, types: Sequence[Any]) -> InferCorrectLayoutOutput:
    found, target, shape = old[0], new[0] if new else None, types[0].shape
    if found is None or target is None or found == target:
        return _same(found, attrs)
    axes = [axis % len(found) for axis in attrs.get("axes") or ()]
    begin, end, strides = (attrs[name] or () for name in ("begin", "end", "strides"))
    slices: dict[int, tuple[Any, Any, Any]] = {}
    for i, axis in enumerate(axes or range(max(map(len, (begin, end, strides))))):
        last = end[i] if i < len(end) else shape[axis]
        slices[axis] = begin[i] if i < len(begin) else 0, last, strides[i] if i < len(strides) else 1
    places = [found.index(name) for name in target.names]
    if axes:
        attrs = _with(attrs, axes=[target.index(found.names[axis]) for axis in axes])
    if len(target) == len(found) and -1 not in places:  # another order
        if not axes:
            made = [slices.get(i, (0, shape[i], 1)) for i in places]
            attrs = _with(attrs, **dict(zip(("begin", "end", "strides"), map(list, zip(*made, strict=True)), strict=True)))
        return _same(target, attrs)
    if not target.text.startswith(found.text):
        return _same(None if len(target) >= len(found) else found, attrs)
    bounds = []
    for axis, (first, last, step) in slices.items():
        factor = target.factor(found.names[axis])
        if factor > 1:
            if attrs.get("slice_mode") == "size" and last < 0:
                last = shape[axis] - first
            if step != 1 or first % factor or last % factor:
                return _same(None, attrs)
            first, last = first // factor, last // factor
        bounds.append((first, last))
    return _same(target, _with(attrs, begin=[first for first, _ in bounds], end=[last for _, last in bounds]))


def _pad(attrs: Any, new: Layouts | None, old: Layouts, types: Sequence[Any]) -> InferCorrectLayoutOutput:
    found = old[0]
    if new and new[0] is not None and found is not None:
        widths = dict(zip(found.names, attrs["pad_width"], strict=False))
        made = [widths.get(name, widths.get(name.upper())) for name in new[0].names]
        split = [widths.get(name.upper()) for name in new[0].names if name not in widths]
        if None not in made and all(not any(width) for width in split if width is not None):
            found, attrs = new[0], _with(attrs, pad_width=made)
    return InferCorrectLayoutOutput([found, Layout("1")], [found], attrs)


def _reduce(attrs: Any, new: Layouts | None, old: Layouts, types: Sequence[Any]) -> InferCorrectLayoutOutput:
    rank, found = len(types[0].shape), old[0]
    given = attrs["axis"]
    named = {axis % rank for axis in (range(rank) if given is None else given if isinstance(given, tuple) else (given,))}
    gone = set(range(rank)) - named if attrs["exclude"] and given is not None else named
    if found is None or len(found) != rank:
        return _same(None, attrs, len(old))
    letters = {found.names[axis] for axis in gone}
    if new and new[0] is not None:
        found = new[0]
        is_gone = [name.upper() in letters for name in found.names]
        attrs = _with(attrs, axis=[i for i, each in enumerate(is_gone) if each != bool(attrs["exclude"])])
    out = [(name, 1 if name.islower() and name.upper() in letters else size) for name, size in found.axes]
    kept = [axis for axis in out if axis[0].upper() not in letters or attrs["keepdims"]]
    means = [Layout.of(out)] * (len(old) - 1)  # of a variance
    return InferCorrectLayoutOutput([found, *means], [Layout.of(kept) if kept else None], attrs)


def _requantize(attrs: Any, new: Layouts | None, old: Layouts, types: Sequence[Any]) -> InferCorrectLayoutOutput:
    found = old[0]
    if new and new[0] is not None and found is not None:
        axis = _moved(attrs["axis"], found, new[0])
        if axis is None or (len(new[0]) > new[0].rank and any(len(type_.shape) for type_ in types[1:3])):
            return _same(None, attrs, others=4)
        found, attrs = new[0], _with(attrs, axis=axis)
    return _same(found, attrs, others=4)


def _roi(attrs: Any, new: Layouts | None, old: Layouts, types: Sequence[Any]) -> InferCorrectLayoutOutput:
    return InferCorrectLayoutOutput([layout(attrs["layout"]), Layout("N5")], [layout(attrs["layout"])], attrs)


def _qnn_broadcast(attrs: Any, new: Layouts | None, old: Layouts, types: Sequence[Any]) -> InferCorrectLayoutOutput:
    found = broadcast(attrs, new and new[:2], old[:2], types)
    return InferCorrectLayoutOutput([*found.input_layouts, *[_C] * 6], found.output_layouts, attrs)


_POOLS = [f"nn.{kind}_pool{n}d" for kind in ("max", "avg", "adaptive_max", "adaptive_avg") for n in (1, 2, 3)]
_REDUCTIONS = ("argmax", "argmin", "sum", "max", "min", "mean", "prod", "all", "any", "variance")
_RULES: dict[str, Rule] = {
    **{f"nn.conv{n}d{kind}": _convolution() for n in (1, 2, 3) for kind in ("", "_transpose")},
    "nn.deformable_conv2d": _convolution(offsets=True),
    **dict.fromkeys(("qnn.conv2d", "qnn.conv2d_transpose"), _convolution(4)),
    **dict.fromkeys((*_POOLS, "nn.global_max_pool2d", "nn.global_avg_pool2d"), _following(_pools)),
    "qnn.avg_pool2d": _following(_pools, 4),
    **dict.fromkeys(("nn.upsampling", "nn.upsampling3d"), _following(_upsamples)),
    **dict.fromkeys(("image.resize1d", "image.resize2d", "image.resize3d"), _following(_resizes)),
    **dict.fromkeys(("vision.roi_align", "vision.roi_pool"), _roi),
    "nn.batch_norm": _along_axis(others=4, of_operands=2),
    **dict.fromkeys(("nn.layer_norm", "nn.instance_norm", "nn.group_norm"), _along_axis(others=2)),
    "nn.l2_normalize": _along_axes,
    "topk": _along_axis(results=2),
    "nn.prelu": lambda attrs, new, old, types: _same(old[0], attrs, others=1),
    "nn.pad": _pad,
    "nn.dense": lambda attrs, new, old, types: _same(Layout("NC"), attrs, 2),
    "qnn.requantize": _requantize,
    **dict.fromkeys(("concatenate", "qnn.concatenate"), _concatenate),
    "split": _split,
    "squeeze": _squeeze,
    "transpose": _transpose,
    "slice_like": _slice_like,
    "strided_slice": _strided_slice,
    **dict.fromkeys(_REDUCTIONS, _reduce),
    **dict.fromkeys(("qnn.add", "qnn.subtract", "qnn.mul"), _qnn_broadcast),
    **dict.fromkeys(("on_device", "device_copy", "copy", "cast", "nn.dropout"), elementwise),
}


def inferred(name: str, attrs: Any, new: Layouts | None, old: Layouts, types: Sequence[Any]) -> InferCorrectLayoutOutput | None:
    """The result of an operator's rule for a call; None if it has no rule, or a layout is unknown."""
    rule = rule_of(name)
    if rule is None:
        return None
    found = rule(attrs, new, old, types)
    check(len(found.input_layouts) == len(old), f"{name}: {KEY}", f"{len(old)} layouts of operands", len(found.input_layouts))
    return None if None in (*found.input_layouts, *found.output_layouts) else found
