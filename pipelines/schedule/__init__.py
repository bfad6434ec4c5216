"""te -> tir: a schedule for each kernel (table.py says which)."""
