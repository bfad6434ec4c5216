"""From a model to a compiled program: `compile`, the stages in order, the cache, one kernel by itself."""
