"""Some entries of torch's database of operator tests; test/opinfo/run.py runs all of them."""

import runpy
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest")

SCRIPT = Path(__file__).parents[2] / "opinfo" / "run.py"
NAMES = ["addmm", "cumsum", "nn.functional.pad.reflect", "nn.functional.layer_norm", "std_mean"]

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def opinfo():
    return runpy.run_path(str(SCRIPT))


@pytest.mark.parametrize("name", NAMES)
def test_entry(opinfo, name):
    assert opinfo["disagreement"](opinfo["entries"]()[name], 4) == ""


def test_the_record_names_entries(opinfo):
    recorded = opinfo["RECORD"].read_text().split()
    assert recorded == sorted(set(recorded)) and set(recorded) <= set(opinfo["entries"]()) and set(NAMES) <= set(recorded)
