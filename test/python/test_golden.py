"""The compiler makes of programs what test/golden records (see golden.py, which compares all of it: what changes one program changes
others)."""

import difflib

import golden
import onnx
import pytest
from oracle import needs_avx512

from relayc.tools.conformance import LISTED_VERSION


@pytest.mark.parametrize(("target", "name"), list(golden.cases()))
def test_golden(target: str, name: str) -> None:
    if target == "imports" and not onnx.__version__.startswith(LISTED_VERSION):
        pytest.skip(f"the models are those of onnx {LISTED_VERSION}")
    if target in ("emulated", "imports", "lit"):  # with kernels for the CPU that they run on
        needs_avx512()
    known, found = golden.recorded(target).get(name, []), golden.made(target, name)
    changes = "\n".join(difflib.unified_diff(known, found, "recorded", "made", lineterm="", n=0))
    assert known == found, f"{target}:\n{changes}\nmeant? .venv/bin/python test/python/golden.py --update"
