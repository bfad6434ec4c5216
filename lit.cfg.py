"""lit: the tests are the .mlir and .py files below test/lit, run as `lit test/lit`.

The tools run in forks of one process (test/fork_server.py), but for test/lit/tools, where they are started as users start them. Another
process may serve instead, RELAYC_LIT_SERVER names its socket. RELAYC_EXECUTED names a folder where what each test executes is recorded.
"""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile

import lit.formats

config.name = "relayc"  # noqa: F821 (lit gives `config` to this file)
config.test_format = lit.formats.ShTest(execute_external=False)  # noqa: F821
config.suffixes = [".mlir", ".py"]  # noqa: F821
# lit looks this file up from the tests' directory upwards, and takes paths from here on.
config.test_source_root = os.path.dirname(os.path.abspath(__file__))  # noqa: F821
config.test_exec_root = os.path.join(config.test_source_root, "build", "lit")  # noqa: F821

_server = os.path.join(config.test_source_root, "test", "fork_server.py")  # noqa: F821
_socket = os.environ.get("RELAYC_LIT_SERVER")
if not _socket:
    # Not below the checkout, whose path may be longer than one of a socket.
    _folder = tempfile.mkdtemp(prefix="relayc-lit-")
    atexit.register(shutil.rmtree, _folder, ignore_errors=True)
    _socket = os.path.join(_folder, "socket")
    # The server ends with its standard input: when lit does, as nothing closes the other end before.
    _read, _write = os.pipe()
    subprocess.Popen(
        [sys.executable, _server, "serve", _socket],
        stdin=_read,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    os.close(_read)
_client = f"{sys.executable} -I -S {_server} run {_socket}"
config.substitutions += [  # noqa: F821
    ("%python", sys.executable),
    (r"\brelayc-opt\b", f"{_client} relayc-opt"),
    (r"\bfilecheck\b", f"{_client} filecheck"),
]
# The tests are of the package that the caller's Python finds.
for _name in {"PYTHONPATH", "RELAYC_EXECUTED"} & set(os.environ):
    config.environment[_name] = os.environ[_name]  # noqa: F821
# Each run is short: threads of numpy's BLAS would only cost their start.
config.environment["OPENBLAS_NUM_THREADS"] = "1"  # noqa: F821
