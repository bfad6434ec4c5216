"""What passes ask of an operator beside its operands, attributes and type: the values of the facts that stand in its class (see base.Op).

No pass has a list of operators: an operator from outside the package states the same facts, and takes part in the same way.
"""

import enum

__all__ = ["LayoutRole", "Pattern", "Precision"]


class Pattern(enum.IntEnum):
    """Relay's fusion patterns (TVM's OpPatternKind), in the order in which they restrict fusion."""

    ELEMWISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    COMM_REDUCE = 3
    OUT_ELEMWISE_FUSABLE = 4
    TUPLE = 7
    OPAQUE = 8


class LayoutRole(enum.Enum):
    """How an operator on images [N, C, H, W] takes part where a region of the program changes its layout (AlterOpLayout).

    FIXED: it reads and gives images in the layout in which it is written.
    FOLLOWS: it works in any layout, with the images that it reads and the one that it gives in the same: an elementwise operator as it is,
      another one with the attributes that `in_layout` gives.
    JOINS: it joins all pixels of the image that it reads, so that its result is the same for every layout of that.
    """

    FIXED = enum.auto()
    FOLLOWS = enum.auto()
    JOINS = enum.auto()


class Precision(enum.Enum):
    """What an operator does with float32 tensors that may be stored as bf16 (ToMixedPrecision).

    ALWAYS: a product: its leading `factors` operands are bf16, sums are float32.
    FOLLOW: it reads a tensor as it is stored, computes in float32, and what it gives may be stored as bf16.
    EXACT: as FOLLOW, and what it gives are elements of what it reads, the same in bf16 as in float32.
    AVERAGE: it reads a tensor as it is stored, as errors of what it reads cancel out, and gives float32.
    NEVER: it reads and gives float32: it loses too much to 8 bits.

    ALWAYS, FOLLOW and NEVER are Relay's conversion categories.
    """

    ALWAYS = enum.auto()
    FOLLOW = enum.auto()
    EXACT = enum.auto()
    AVERAGE = enum.auto()
    NEVER = enum.auto()
