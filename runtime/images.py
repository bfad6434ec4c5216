"""Decoding of image files, by Pillow: the packed function that ImageDecoder calls."""

import io
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from relayc.packages import optional_package
from relayc.runtime.host import HOST_PREFIX, current
from relayc.runtime.kept import keep
from relayc.runtime.registry import register_func

FORMATS = ("BMP", "JPEG", "JPEG2000", "TIFF", "PNG", "WEBP", "PPM")
"""Pillow's names of ONNX's formats."""


def _gray(image: Any) -> np.ndarray:
    return np.asarray(image.convert("L"))[..., None]


def _colors(image: Any) -> np.ndarray:
    return np.asarray(image.convert("RGB"))


_PIXELS: dict[str, tuple[int, Callable[[Any], np.ndarray]]] = {
    "RGB": (3, _colors),
    "BGR": (3, lambda image: _colors(image)[..., ::-1]),
    "Grayscale": (1, _gray),
}
"""For each pixel format: the number of channels, and the function that extracts them from an image."""


def _eight_bits(image: Any) -> Any:
    """An image reduced to 8 bits per element: Pillow would clip elements of 16 bits, but their upper bits are needed."""
    from PIL import Image

    return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)) if image.mode.startswith("I;16") else image


def _decoded(encoded: np.ndarray, pixel_format: str) -> np.ndarray:
    optional_package("PIL", "ImageDecoder: expected the package Pillow (pip install 'relayc[image]'), found none")
    from PIL import Image

    channels, pixels = _PIXELS[pixel_format]
    try:
        with Image.open(io.BytesIO(encoded.tobytes()), formats=FORMATS) as image:
            return pixels(_eight_bits(image))
    except (OSError, ValueError, SyntaxError, EOFError, struct.error):
        # ONNX: an image that cannot be decoded is an image without pixels.
        return np.zeros((0, 0, channels), np.uint8)


@register_func(f"{HOST_PREFIX}image.decode")
def decode(encoded: np.ndarray, pixel_format: np.ndarray, size: np.ndarray, image: np.ndarray) -> None:
    """Decodes a file; gives height and width, int64[2], and the number of the pixels, uint8[height, width, channels], which are kept."""
    found = _decoded(encoded, current().text(int(pixel_format)))
    size[...] = found.shape[:2]
    image[...] = keep(found)
