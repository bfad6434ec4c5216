"""Code below tir that the backends share: packed entries and their checks, mathematical functions as arithmetic."""
