"""Tensor intrinsics of the CPU, under names that say how large a tile is.

Products, for any number of steps k; `i` counts rows of C, `j` its columns, and loops are in the order of the indices given here:

- dot_f32_{rows}x{columns}: C[i, j] += A[i, k] * B[k, j], all f32; the sums stay in vector registers. A may lie anyhow.
- dot_bf16_{rows}x{columns}: C[i, j] += A[i, k, p] * B[k, j, p] over pairs p of bf16, C f32, on CPUs with AVX512-BF16, for columns in
  vectors of 16. The pairs of a row of B lie side by side.
- dot_amx_{rows}x{columns}: C[i, t, j] += A[i, k, p] * B[t, k, j, p] over pairs p of bf16, C f32, on CPUs with AMX, for tiles t of 16
  columns. The pairs of a row of a tile of B lie side by side, and so do those of a row of A. The sums stay in tile registers.

Steps of attention beside its products, all f32:

- softmax_weights_{columns}: W[j] = exp(X[j] - M[0]), as softmax needs it: infinite from e**88.4 on.
- transpose_f32_{size}: Y[i, j] = X[j, i].

The last dimensions lie side by side, unless it says otherwise. Products begin sums by themselves. Tiles may end early in their rows,
columns and steps, as far as each says.
"""

from relayc.pipelines.targets.cpu.strategies.intrinsics import amx, attention, registers
