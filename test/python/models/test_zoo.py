"""A sample of the zoo (test/zoo): exported models, compiled once and compared with ONNX Runtime at sizes around the limits of their
schedules and above 1,024, as `make zoo` does it with all of them."""

import sys
from pathlib import Path

import pytest

ZOO = Path(__file__).parents[2] / "zoo"
sys.path.insert(0, str(ZOO))

from check import check  # noqa: E402 (the zoo is a program, not a package)
from sample import FOLDER, restore  # noqa: E402


@pytest.mark.parametrize("stored", sorted(FOLDER.glob("*.gz")), ids=lambda path: path.name.removesuffix(".onnx.gz"))
def test_a_sample_agrees_with_onnx_runtime(stored, tmp_path):
    report = check(restore(stored, tmp_path), count=8, seed=0, times=False, write=lambda report: None)
    assert report.error == "" and len(report.points) >= 7
    assert [point for point in report.points if point.status != "agrees"] == []
    assert max(size for point in report.points for size in point.sizes.values()) > 1024
