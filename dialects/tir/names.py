"""Attributes of upstream's operations in a function that is being scheduled."""

FORM = "tir.blocks"
"""Of a function: it is of blocks and loops (unit)."""
WRITTEN = "tir.written"
"""Of a function of the te stage that stands for one of blocks and loops: the text of that (see pipelines.tir.schedule.written)."""
LOOP = "tir.loop"
"""Of an scf.for: its name, which no other loop of the function has. Such a loop goes from 0 by steps of 1."""
KIND = "tir.kind"
"""Of an scf.for: how it runs (see Kind); serial by default."""
ANNOTATIONS = "tir.annotations"
"""Of loops and blocks: a dictionary of hints by name."""
BUFFER = "tir.buffer"
"""Of arguments and of memref.alloc: the name of the buffer."""
SCOPE = "tir.scope"
"""Of memref.alloc: the memory of the buffer; "global" by default."""
SHAPE = "tir.shape"
"""Of arguments that have sizes which are expressions: the shape, as integers and texts."""
OUTPUT = "tir.output"
"""Of arguments: it is a result of the kernel (unit)."""
LAYOUT = "tir.layout"
"""Of arguments that are parameters: the affine map of indices by which they are packed; their shape is that of the packed one."""
PAD = "tir.pad"
"""Of arguments with a layout: the number that fills the padding, as an f64; undefined by default."""
AXES = "tir.axes"
"""Of linalg operations of the te stage: names of their loops, in order."""


class Kind:
    """How a loop runs. A thread of a GPU is bound by its name: "blockIdx.x", "threadIdx.x", "vthread.x"."""

    SERIAL = "serial"
    PARALLEL = "parallel"
    VECTORIZED = "vectorized"
    UNROLLED = "unrolled"
    ALL = (SERIAL, PARALLEL, VECTORIZED, UNROLLED)
    THREADS = tuple(f"{what}.{axis}" for what in ("blockIdx", "threadIdx", "vthread") for axis in "xyz")
