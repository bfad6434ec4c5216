"""What passes ask of an operator beside its operands, attributes and type: the values of the facts that stand in its class (see base.Op).

No pass has a list of operators: an operator from outside the package states the same facts, and takes part in the same way.
"""

import enum


class Pattern(enum.IntEnum):
    """Relay's fusion patterns (TVM's OpPatternKind), ordered by how much they restrict fusion."""

    ELEMWISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    COMM_REDUCE = 3
    OUT_ELEMWISE_FUSABLE = 4
    TUPLE = 7
    OPAQUE = 8


class LayoutRole(enum.Enum):
    """The role of an operator on images [N, C, H, W] in a region of the program whose layout changes (AlterOpLayout).

    FIXED: it reads and writes images in the layout in its attributes.
    FOLLOWS: it supports any layout, the same for its input and output images: an elementwise operator unchanged, other operators with the
    attributes from `in_layout`.
    JOINS: it combines all pixels of its input image, so its result does not depend on the layout of the image.
    """

    FIXED = enum.auto()
    FOLLOWS = enum.auto()
    JOINS = enum.auto()


class Precision(enum.Enum):
    """How an operator treats float32 tensors that may be stored as bf16 (ToMixedPrecision).

    ALWAYS: a product: its first `factors` operands are bf16, sums are float32.
    FOLLOW: it reads a tensor as stored, computes in float32, and its result may be stored as bf16.
    EXACT: as FOLLOW, and its result consists of elements of its operands, equal in bf16 and float32.
    AVERAGE: it reads a tensor as stored, because errors average out, and returns float32.
    NEVER: it reads and returns float32: it loses too much precision with 8 bits.

    ALWAYS, FOLLOW and NEVER are Relay's conversion categories.
    """

    ALWAYS = enum.auto()
    FOLLOW = enum.auto()
    EXACT = enum.auto()
    AVERAGE = enum.auto()
    NEVER = enum.auto()
