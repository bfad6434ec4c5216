"""Runs request_cases.py in a process of its own: the server and the client register protobuf files of one name."""

import subprocess
import sys
from pathlib import Path


def test_what_is_read_of_requests_and_settings() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", str(Path(__file__).with_name("request_cases.py"))]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode in (0, 5), done.stdout + done.stderr  # 5: skipped as a whole
