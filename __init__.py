"""relayc: a machine-learning compiler written in Python on upstream MLIR, with Relay as its graph dialect."""
