"""Random programs that combine operators give the same in every configuration (see random_programs.py)."""

import os
import subprocess
import sys
from pathlib import Path

from oracle import needs_avx512

DRIVER = Path(__file__).parent / "random_programs.py"
PROGRAMS, SEED = 15, 1
"""Twenty seconds on one core."""


def test_random_programs_agree_in_every_configuration():
    needs_avx512()
    command = [sys.executable, DRIVER, "--programs", PROGRAMS, "--seed", SEED, "--text"]
    environment = {**os.environ, "RELAYC_CACHE": "0"}
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment, timeout=1200)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-2000:]}"
    assert f"{PROGRAMS} programs" in done.stdout
