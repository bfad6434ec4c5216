"""lit: the tests are the .mlir and .py files below test/lit, run as `lit test/lit`."""

import os
import sys

import lit.formats

config.name = "relayc"  # noqa: F821 (lit gives `config` to this file)
config.test_format = lit.formats.ShTest(execute_external=False)  # noqa: F821
config.suffixes = [".mlir", ".py"]  # noqa: F821
# lit looks this file up from the tests' directory upwards, and takes paths from here on.
config.test_source_root = os.path.dirname(os.path.abspath(__file__))  # noqa: F821
config.test_exec_root = os.path.join(config.test_source_root, "build", "lit")  # noqa: F821
config.substitutions += [  # noqa: F821
    ("%python", sys.executable),
    (r"\brelayc-opt\b", f"{sys.executable} -m relayc.tools.opt"),
    (r"\bfilecheck\b", f"{sys.executable} -m filecheck"),
]
# The tests are of the package that the caller's Python finds.
if "PYTHONPATH" in os.environ:
    config.environment["PYTHONPATH"] = os.environ["PYTHONPATH"]  # noqa: F821
# Each run is short: threads of numpy's BLAS would only cost their start.
config.environment["OPENBLAS_NUM_THREADS"] = "1"  # noqa: F821
