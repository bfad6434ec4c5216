"""Schedules of sliding windows: depthwise convolutions and poolings."""
