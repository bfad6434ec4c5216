"""Hand-written schedules: `Schedule`, its traces and scripts, and their use as strategies."""
