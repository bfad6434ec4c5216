"""Mutants of ONNX models: each gives results or one error that names the place, and none anything else (see test/python/fuzz.py)."""

import os
import subprocess
import sys
from pathlib import Path

FUZZ = Path(__file__).parents[1] / "fuzz.py"
COMPILED, IMPORTED, SEED = 10, 100, 1
"""Five seconds on one core."""


def test_mutants_give_results_or_one_error_that_names_the_place(tmp_path):
    command = [sys.executable, FUZZ, "--models", COMPILED, "--imports", IMPORTED, "--seed", SEED, "--folder", tmp_path]
    environment = {**os.environ, "KMP_BLOCKTIME": "0", "RELAYC_CACHE": "0"}
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment, timeout=600)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-2000:]}"
    assert f"{COMPILED + IMPORTED} mutants" in done.stdout
