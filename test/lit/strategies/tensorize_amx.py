# RUN: %python %s | filecheck %s
"""A product of bf16 on AMX tiles as tir, by tensorize."""

import ml_dtypes
import numpy as np

import relayc
from relayc import te
from relayc.bench.written_kernels import amx_tiles, product_of_bf16


def show(rows, columns, depth):
    params = {1: np.zeros((depth, columns), ml_dtypes.bfloat16)}
    target = relayc.Target("cpu", mcpu="sapphirerapids", emulate=True, num_threads=2)
    module = product_of_bf16(rows, columns, depth)
    print(relayc.compile_kernel(module, schedule=amx_tiles(32, 32, False), params=params, target=target, keep_ir=True).ir["tir"])


show(64, 64, 128)
# Two by two tiles are carried by the loop over the steps; a tile of B is one run of memory. The epilogue reads what they are stored to.
# CHECK-LABEL: func.func private @main({{.*}}relay.uses_tiles
# CHECK: scf.parallel
# CHECK: %[[SUMS:.*]] = memref.alloca() {alignment = 64 : i64} : memref<1024xf32>
# CHECK-NOT: memref.alloca
# CHECK-COUNT-4: x86.amx.tile_zero : !x86.amx.tile<16x16xf32>
# CHECK: %[[TILES:.*]]:4 = scf.for %{{.*}} = %c0 to %c4 step %c1 iter_args
# CHECK-COUNT-2: x86.amx.tile_load %{{.*}}, %c128 : memref<8192xbf16> into !x86.amx.tile<16x32xbf16>
# CHECK: x86.amx.tile_load %{{.*}}, %c32 : memref<8192xbf16> into !x86.amx.tile<16x32xbf16>
# CHECK-COUNT-2: x86.amx.tile_mulf
# CHECK: x86.amx.tile_load %{{.*}}, %c32 : memref<8192xbf16> into !x86.amx.tile<16x32xbf16>
# CHECK-COUNT-2: x86.amx.tile_mulf
# CHECK-NEXT: scf.yield
# CHECK-COUNT-4: x86.amx.tile_store %[[SUMS]]
# CHECK: vector.load %[[SUMS]]
# CHECK-NOT: x86

show(te.size_var("n"), 32, 64)
# Whole tiles, then a branch each for two rows of tiles and for one, of which the last reads a copy of the rows that there are.
# CHECK-LABEL: func.func private @main({{.*}}relay.uses_tiles
# CHECK: scf.if
# CHECK-COUNT-4: x86.amx.tile_mulf
# CHECK: else
# CHECK: scf.if
# CHECK: scf.for {{.*}} iter_args
# CHECK: x86.amx.tile_load {{.*}} : memref<?xbf16> into
# CHECK: vector.store %{{.*}}, %[[COPY:.*]][%{{.*}}] : memref<512xbf16>, vector<32xbf16>
# CHECK: x86.amx.tile_load %[[COPY]]
# CHECK-COUNT-4: x86.amx.tile_mulf
# CHECK: else
# CHECK-COUNT-2: x86.amx.tile_zero
# CHECK-NOT: x86.amx.tile_zero
# CHECK-COUNT-2: x86.amx.tile_mulf
# CHECK-NOT: x86.amx.tile_mulf
