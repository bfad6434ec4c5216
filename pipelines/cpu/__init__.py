"""The CPU as a target."""
