"""Schedules that people write: `Schedule`, its traces and scripts, and their use as strategies."""
