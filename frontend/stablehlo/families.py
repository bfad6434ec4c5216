"""Imports the modules of converters, which register them."""

from relayc.frontend.stablehlo import (  # noqa: F401
    control,
    elementwise,
    fourier,
    indexing,
    products,
    reduce,
    shape,
    sort,
    windows,
)
