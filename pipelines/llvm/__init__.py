"""What the backends share below tir: packed entries and their checks, mathematical functions as arithmetic."""
