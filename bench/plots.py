"""Figures with matplotlib, which is imported only when one is drawn."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def figure(path: Path, size: tuple[float, float]) -> Iterator[Any]:
    """Axes to draw on; the figure is written to `path` when the block ends. Its suffix gives the format.

    Raises:
      ModuleNotFoundError: matplotlib is not installed.
    """
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.fonttype"] = "none"  # text in pictures stays text
    from matplotlib import pyplot

    drawn, axes = pyplot.subplots(figsize=size, layout="constrained")
    try:
        yield axes
        path.parent.mkdir(parents=True, exist_ok=True)
        drawn.savefig(path, dpi=120)
    finally:
        pyplot.close(drawn)
