# RUN: %python %s | filecheck %s
"""A kernel as PTX: loads of 16 bytes through the cache of constants, a shuffle, shared memory, a barrier, approximate functions."""

from relayc.dialects.mlir import ir, make_context
from relayc.pipelines.context.target import Target
from relayc.pipelines.targets.cuda.device.code import compile_kernels
from relayc.pipelines.targets.cuda.device.lowering import lower_kernels
from relayc.pipelines.targets.gpu.outline import outline_launches

# CHECK: .target sm_90a
# CHECK: .visible .entry rows(
# CHECK-NEXT: .param .u64 .ptr .align 16 rows_param_0
# CHECK: .maxntid 64, 1, 1
# CHECK: .shared .align 16 .b8 rows_shared_0[16]
# CHECK: ld.global.nc.v4.b32
# CHECK: max.NaN.f32
# CHECK: shfl.sync.bfly.b32 {{.*}}, 16, 31, -1;
# CHECK: st.shared.b32
# CHECK: bar.sync 0;
# CHECK: ld.shared.b32
# CHECK: ex2.approx.ftz.f32
# CHECK: st.global.v4.b32
TEXT = """
func.func private @rows(%x: memref<8x256xf32>, %y: memref<8x256xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%b, %by, %bz) in (%gx = %c8, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1)
      workgroup(%s : memref<4xf32, #gpu.address_space<workgroup>>) {
    %column = arith.muli %t, %c4 : index
    %v = vector.load %x[%b, %column] : memref<8x256xf32>, vector<4xf32>
    %own = vector.reduction <maximumf>, %v : vector<4xf32> into f32
    %by16 = arith.constant 16 : i32
    %width = arith.constant 32 : i32
    %other, %valid = gpu.shuffle xor %own, %by16, %width : f32
    %warp = arith.divui %t, %c32 : index
    memref.store %other, %s[%warp] : memref<4xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %first = memref.load %s[%c1] : memref<4xf32, #gpu.address_space<workgroup>>
    %e = math.exp2 %first fastmath<afn> : f32
    %w = vector.broadcast %e : f32 to vector<4xf32>
    vector.store %w, %y[%b, %column] : memref<8x256xf32>, vector<4xf32>
    gpu.terminator
  }
  return
}
"""

with make_context() as context:
    context.load_all_available_dialects()
    module = ir.Module.parse(TEXT)
    outline_launches(module)
    target = Target("cuda", arch="sm_90a")
    lower_kernels(module, target)
    code = compile_kernels(module, target)
print(code.images.kernels["rows"].of("sm_90a").ptx)
