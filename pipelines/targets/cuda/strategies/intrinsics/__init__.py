"""Tensor intrinsics of NVIDIA GPUs: instructions that the threads of a warp execute together on tensor cores. Names give the tile size.

Operands and sums of a product are in registers of the warp (scope "warp"), in fragments of 16 rows of A, 8 columns of B and 32 bytes of the
depth, 16 by 8 sums; {type} is f16, bf16 or s8, rows, columns and steps are multiples of these. Sums are f32, or i32 of s8:

- mma_{type}_{rows}x{columns}x{steps}: C[i, j] += A[i, k] * B[j, k], all in registers. It begins sums by itself.
- ldmatrix_a_{type}_{rows}x{steps}: W[i, k] = S[i, k], rows of A from shared memory to registers.
- ldmatrix_b_{type}_{columns}x{steps}: W[j, k] = S[j, k], columns of B, which are contiguous along the depth like rows of A.
- ldmatrix_a_trans_{type}_{steps}x{rows}, ldmatrix_b_trans_{type}_{steps}x{columns}: W[k, i] = S[k, i], W[k, j] = S[k, j] of f16 and bf16
  that are contiguous across the depth.
- mma_store_{type}_{rows}x{columns}: D[i, j] = C[i, j], sums of type f32 or i32 from registers to memory.

The lines of S begin at multiples of 16 bytes.

Groups of four warps multiply operands in shared memory, where copies of boxes ("tensor_copy") store them in permuted lines of 128 bytes.
Sums are in registers of the group (scope "warpgroup"), in fragments of 64 by 8. {type} is f16, bf16, tf32 or s8; rows are multiples of 64,
columns of 8 up to 256 (of s8 of 16 from 32 on), steps of 32 bytes:

- wgmma_{type}_{rows}x{columns}x{steps}: C[i, j] += A[i, k] * B[j, k]. It begins sums by itself. Operands of tf32 are
  f32, whose last 13 bits are ignored.
- wgmma_trans_a_..., wgmma_trans_b_..., wgmma_trans_a_trans_b_...: for f16 and bf16 with A[k, i], or B[k, j], contiguous across the depth.
- wgmma_store_{type}_{rows}x{columns}: D[i, j] = C[i, j], sums of type f32 or i32 from registers to memory.
"""

from relayc.pipelines.targets.cuda.strategies.intrinsics import fragments, groups, products
