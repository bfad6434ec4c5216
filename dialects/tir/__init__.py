"""The `tir` dialect: blocks, which say what is computed at a point of the loops around them.

A function that is being scheduled holds loops (`scf.for` with the attributes below), buffers (its arguments and `memref.alloc`), and
blocks, each of which stands in loops alone. It is TensorIR's form on MLIR's operations: where upstream has an operation it is used.

    scf.for %i = %c0 to %c512 step %c1 {
      scf.for %k = %c0 to %c64 step %c1 {
        "tir.block"(%i, %k) ({
        ^bb0(%vi: index, %vk: index):
          memref.store %zero, %C[%vi]
        }, {
        ^bb0(%vi: index, %vk: index):
          ... memref.store %sum, %C[%vi]
        }) {name = "C", iterators = ["parallel", "reduction"], extents = [512, 64]} : (index, index) -> ()
      } {tir.loop = "k"}
    } {tir.loop = "i", tir.kind = "parallel"}
"""

from relayc.dialects.tir.block import Block, TirDialect
from relayc.dialects.tir.names import ANNOTATIONS, AXES, BUFFER, FORM, KIND, LAYOUT, LOOP, OUTPUT, PAD, SCOPE, SHAPE, Kind
