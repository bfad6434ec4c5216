"""Schedules of bf16 contractions on instructions that multiply pairs along the reduction: AMX tiles and AVX512-BF16 dot products."""
