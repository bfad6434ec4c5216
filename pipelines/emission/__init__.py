"""Emission of operations at the ambient insertion point: arithmetic, index expressions, symbolic sizes, loops."""
