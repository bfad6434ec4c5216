"""AlterOpLayout: 2-D convolutions in NCHWc, with the channels in blocks of a vector (Relay's AlterOpLayout).

In blocks a pixel's channels are neighbours in memory: a convolution's accumulators are stored as vectors whatever the size of the map, and
its reduction over channels reads whole cache lines. The layout is chosen for whole regions: it spreads from convolutions through
elementwise operators, poolings and concatenations, so that transforms stand only where a region begins and ends. A convolution alone keeps
NCHW unless its arithmetic outweighs the transforms. Weights stay as they are: schedules pack them.
"""

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op, Pattern, build
from relayc.dialects.relay.module import IRModule
from relayc.dialects.relay.structure import Constant
from relayc.dialects.relay.types import TensorType
from relayc.pipelines.graph.rewrite import graph_blocks
from relayc.pipelines.passes import PassContext, config_option, function_pass
from relayc.pipelines.target import Target

POOLS = frozenset({"nn_max_pool2d", "nn_avg_pool2d", "nn_global_avg_pool2d", "nn_global_max_pool2d"})

config_option("relay.AlterOpLayout.block", int, 0, "channels in a block; 0 is the lanes of the target's f32 vector")


def _is_image(type_: TensorType, block: int) -> bool:
    """Whether a tensor may be in blocks: static NCHW with whole blocks of channels."""
    return type_.rank == 4 and type_.is_static and type_.shape[1] % block == 0 and type_.dtype == "float32"  # type: ignore[operator]


class _Layouts:
    """The decision for a block of the program, and its rewriting."""

    def __init__(self, block: ir.Block, size: int, mod: IRModule) -> None:
        self.block, self.size, self.mod = block, size, mod
        self.layout = f"NCHW{size}c"
        self.ops = [op for op in block.operations if isinstance(op, Op)]
        self.wanted: set[ir.Value] = set()
        self.blocked: dict[ir.Value, ir.Value] = {}
        self.plain: dict[ir.Value, ir.Value] = {}

    def run(self) -> None:
        for op in reversed(self.ops):
            self._want(op)
        dead = []
        for op in list(self.block.operations):
            with ir.InsertionPoint(op.operation), op.operation.location:
                if isinstance(op, Op) and self._rewrite(op):
                    dead.append(op)
                else:
                    self._restore_operands(op)
        for op in reversed(dead):
            op.operation.erase()

    # ---- which values are better in blocks

    def _want(self, op: Op) -> None:
        """Marks operands of `op` that it would rather read in blocks."""
        name = type(op)._op_name
        if self._is_convolution(op):
            if TensorType.of(op.data).shape[1] % self.size == 0:
                self.wanted.add(op.data)
        elif op.operation.results[0] in self.wanted and self._spreads(op, name):
            self.wanted.update(v for v in op.operation.operands if _is_image(TensorType.of(v), self.size))

    def _is_convolution(self, op: Op) -> bool:
        if type(op)._op_name != "nn_conv2d" or not isinstance(op.weight.owner, Constant):
            return False
        plain = op.data_layout == "NCHW" and op.kernel_layout == "OIHW" and op.out_layout in ("", "NCHW")
        return plain and op.groups == 1 and _is_image(TensorType.of(op.operation.results[0]), self.size)

    def _is_heavy(self, op: Op) -> bool:
        """Whether a convolution gains more from blocks than transforms of its data and result cost, about a cycle an element.

        Direct in NCHW it takes at least outputs * depth / 16 cycles; in blocks, and more so by Winograd's method, well under two thirds.
        A 1x1 convolution is as fast in NCHW, where its lanes run along the pixels.
        """
        data, weight, out = TensorType.of(op.data), TensorType.of(op.weight), TensorType.of(op.operation.results[0])
        depth = weight.num_elements // weight.shape[0]  # type: ignore[operator]
        if weight.shape[2:] == (1, 1):
            return False
        return data.shape[1] % self.size == 0 and out.num_elements * depth / 48 > data.num_elements + out.num_elements  # type: ignore[operator]

    def _spreads(self, op: Op, name: str) -> bool:
        """Whether an operator can work on blocks as it does on NCHW."""
        if len(op.operation.results) != 1 or not _is_image(TensorType.of(op.operation.results[0]), self.size):
            return False
        if name in POOLS:
            return op.layout == "NCHW" and op.attrs().get("out_layout", "") in ("", "NCHW")
        if name == "concatenate":
            return op.axis in (1, -3) and all(_is_image(TensorType.of(v), self.size) for v in op.operation.operands)
        if (
            op.pattern not in (Pattern.ELEMWISE, Pattern.BROADCAST)
            or isinstance(op, Constant)
            or op.attr_specs.keys() - {"a_min", "a_max", "alpha"}
        ):
            return False
        shape = TensorType.of(op.operation.results[0]).shape
        return all(self._broadcasts(TensorType.of(v), shape) for v in op.operation.operands)

    def _broadcasts(self, type_: TensorType, shape: tuple[int | None, ...]) -> bool:
        """Whether an operand still broadcasts to `shape` when both are in blocks: one element, whole, or one value per channel."""
        if not type_.is_static or type_.rank > 4 or type_.dtype != "float32":
            return False
        padded = (1,) * (4 - type_.rank) + type_.shape
        return (
            padded == shape
            or all(n == 1 for n in padded)
            or (padded[1] == shape[1] and padded[0] in (1, shape[0]) and padded[2:] == (1, 1))
        )

    # ---- rewriting

    def _rewrite(self, op: Op) -> bool:
        """Builds `op` in blocks where its operands are, or its result is wanted so; gives whether it did."""
        name = type(op)._op_name
        if self._is_convolution(op):
            known = op.data in self.blocked
            if not known and op.operation.results[0] not in self.wanted and not self._is_heavy(op):
                return False
            whole = TensorType.of(op.data).shape[1] % self.size == 0
            attrs = {**op.attrs(), "data_layout": self.layout if whole else "NCHW", "out_layout": self.layout}
            data = self._in_blocks(op.data) if whole else self._in_plain(op.data)
            self.blocked[op.operation.results[0]] = build("nn.conv2d", data, op.weight, **attrs)
            return True
        images = [v for v in op.operation.operands if TensorType.of(v).shape == TensorType.of(op.operation.results[0]).shape] or list(
            op.operation.operands
        )[:1]
        if name == "concatenate":
            images = list(op.operation.operands)
        if not images or not any(v in self.blocked for v in images) or not self._spreads(op, name):
            return False
        if name == "concatenate" and sum(v in self.blocked for v in images) * 2 < len(images):
            return False
        attrs = op.attrs()
        if name in POOLS:
            attrs["layout"] = self.layout
        if name == "concatenate":
            attrs["axis"] = 1
        operands = [self._operand(v) for v in op.operation.operands]
        self.blocked[op.operation.results[0]] = build(op.relay_name, *operands, **attrs)
        return True

    def _operand(self, value: ir.Value) -> ir.Value:
        """An operand of an operator in blocks."""
        type_ = TensorType.of(value)
        if type_.num_elements == 1:
            return value
        if type_.rank < 4:
            value = build("reshape", value, newshape=(1,) * (4 - type_.rank) + type_.shape)
        return self._in_blocks(value)

    def _in_blocks(self, value: ir.Value) -> ir.Value:
        if value not in self.blocked:
            self.blocked[value] = build("layout_transform", value, src_layout="NCHW", dst_layout=self.layout)
        return self.blocked[value]

    def _in_plain(self, value: ir.Value) -> ir.Value:
        if value not in self.plain and self._is_rewritten(value):
            self.plain[value] = build("layout_transform", self.blocked[value], src_layout=self.layout, dst_layout="NCHW")
        return self.plain.get(value, value)

    def _is_rewritten(self, value: ir.Value) -> bool:
        """Whether the operation that gives `value` was built anew, so that only its result in blocks lives on."""
        made = self.blocked.get(value)
        return made is not None and not (
            isinstance(made.owner, Op) and type(made.owner)._op_name == "layout_transform" and made.owner.data == value
        )

    def _restore_operands(self, op: ir.OpView) -> None:
        for i, value in enumerate(list(op.operation.operands)):
            plain = self._in_plain(value)
            if plain != value:
                op.operation.operands[i] = plain


@function_pass(opt_level=3, name="AlterOpLayout")
def alter_op_layout(func: ir.Operation, mod: IRModule, ctx: PassContext) -> None:
    """Regions of 2-D convolutions work on channels in blocks."""
    target = ctx.get("target") or Target("cpu")
    size = ctx.get("relay.AlterOpLayout.block") or target.vector_bytes // 4
    for block in graph_blocks(func):
        _Layouts(block, size, mod).run()
