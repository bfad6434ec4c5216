"""The modules that register converters, one per operator family: importing this module registers them all."""

from relayc.frontend.pytorch import (  # noqa: F401 (they register converters)
    activation,
    attention,
    backward,
    bessel,
    convolution,
    create,
    elementwise,
    gamma,
    indexing,
    linear,
    norm,
    polynomials,
    pool,
    recurrent,
    reduce,
    resample,
    shape,
    solve,
    sort,
    special,
)
