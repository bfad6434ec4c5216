"""Some entries of torch's database of operator tests; test/opinfo/run.py runs all of them."""

import importlib.util
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest")

SCRIPT = Path(__file__).parents[2] / "opinfo" / "run.py"
NAMES = [
    *("addmm", "cumsum", "nn.functional.pad.reflect", "nn.functional.layer_norm", "std_mean"),
    *("nonzero_static", "mvlgamma.mvlgamma_p_3", "native_group_norm", "nn.functional.dropout", "unsafe_split", "fft.irfft"),
    *("repeat_interleave", "linalg.det", "scatter_reduce.mean", "item", "hypot"),
    *("unique", "mode", "linalg.solve", "cholesky", "special.chebyshev_polynomial_t", "special.modified_bessel_k1", "erfinv"),
]

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def opinfo():
    found = importlib.util.spec_from_file_location("opinfo", SCRIPT)
    module = sys.modules["opinfo"] = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", NAMES)
def test_entry(opinfo, name):
    op = opinfo.entries()[name]
    why, _ = opinfo.disagreement(op, opinfo.samples_of(op)[:4])
    assert why == ""


def test_gradients(opinfo):
    ops = [opinfo.entries()[name] for name in ("mul", "nn.functional.gelu")]
    pairs = [(op, opinfo.samples_of(op, gradients=True)[0]) for op in ops]
    assert opinfo.gradient_errors(pairs) == ["", ""]


def test_the_record_names_entries(opinfo):
    recorded = opinfo.recorded()
    assert list(recorded) == sorted(recorded) and set(recorded) <= set(opinfo.entries()) and set(NAMES) <= set(recorded)
    assert {o.kind for o in recorded.values()} <= set(opinfo.CLASSES)
