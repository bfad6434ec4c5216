"""The modules that register converters, one per operator family: importing this module registers them all."""

from relayc.frontend.pytorch import (  # noqa: F401 (they register converters)
    activation,
    attention,
    backward,
    convolution,
    create,
    elementwise,
    gamma,
    indexing,
    linear,
    norm,
    pool,
    recurrent,
    reduce,
    resample,
    shape,
    sort,
    special,
)
