"""The modules that register converters, one per operator family."""

from relayc.frontend.pytorch import (
    activation,
    attention,
    convolution,
    create,
    elementwise,
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

FAMILIES = (
    activation,
    attention,
    convolution,
    create,
    elementwise,
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
