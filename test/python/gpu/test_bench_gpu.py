"""`python -m relayc.bench gpu`: what it does without a GPU, what it measures, its tables, and a run on the driver of tests."""

import json

import pytest
from fake_cuda import fake_cuda

from relayc.bench.__main__ import main, make_parser
from relayc.bench.gpu import GpuResult, gpu_table, repetitions, summarize
from relayc.bench.gpu_cases import attention, default_cases, find_cases, product, stream
from relayc.runtime.device import Device


def test_without_a_gpu_it_says_so(capsys):
    if Device("cuda").exists:
        pytest.skip("this machine has a GPU")
    assert main(["gpu"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("relayc.bench: device cuda:0: expected ") and said.count("\n") == 1


def test_arguments():
    found = make_parser().parse_args(["gpu", "--sections", "products,memory", "--sizes", "64x32x16,8x8x8", "--rounds", "2"])
    assert found.sections == ("products", "memory") and found.sizes == ((64, 32, 16), (8, 8, 8)) and found.rounds == 2
    for wrong in (["--sections", "speed"], ["--sizes", "64x32"], ["--sizes", "8x8x8,", "--sections", "products"]):
        with pytest.raises(SystemExit):
            make_parser().parse_args(["gpu", *wrong])


def test_cases_count_their_work():
    small = product("bfloat16", 4, 8, 16)
    assert (small.flops, small.bytes) == (2 * 4 * 8 * 16, 2 * (4 * 16 + 8 * 16 + 4 * 8))
    causal = attention("float16", 2, 8, 4, 16, 16, 32, True)
    assert causal.flops == 2 * 2 * 8 * 16 * 16 * 32 and [a.shape for a in causal.inputs()] == list(causal.shapes)
    assert stream("float32", "sum of rows", 6, 5).bytes == 4 * (6 * 5 + 6)
    assert repetitions(product("float16", 16384, 16384, 16384)) == 1 and repetitions(small) == 200
    names = [case.name for case in default_cases()]
    assert len(set(names)) == len(names) and "16384x16384x16384 bfloat16" in names
    assert {case.section for case in find_cases(("memory",))} == {"memory"}
    assert [case.name for case in find_cases(("products",), [(1, 2, 3)])] == ["1x2x3 float16", "1x2x3 bfloat16"]


def test_tables():
    results = [
        GpuResult("products", "a", 10**12, 10**9, {"relayc": 1e-3, "torch": 2e-3}),
        GpuResult("products", "b", 10**12, 10**9, {"relayc": 4e-3, "torch": 2e-3}),
        GpuResult("products", "c", errors={"relayc": "RuntimeError: no"}),
    ]
    assert summarize(results) == {"products": {"geometric_mean": pytest.approx(1.0), "least": pytest.approx(0.5)}}
    cells = [list(column.cells) for column in gpu_table("products", results, 2e12).columns]
    assert cells == [
        ["a", "b", "c"],
        ["1000.0", "4000.0", "failed"],
        ["2000.0", "2000.0", ""],
        ["1000.0", "250.0", ""],
        ["1000", "250", ""],
        ["50%", "12%", ""],
        ["2.00", "0.50", ""],
    ]


def test_a_run(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("relayc.bench.gpu_cases.default_cases", lambda: [stream("float32", "softmax", 4, 8)])
    monkeypatch.setattr("relayc.bench.gpu_cases.DTYPES", ("float16",))
    monkeypatch.setattr("relayc.bench.gpu._MOST_RECORDED", 2)
    with fake_cuda() as driver:
        path = tmp_path / "found.json"
        arguments = ["--sections", "products,memory", "--sizes", "8x8x16", "--rounds", "1", "--runs", "1", "--copy-bytes", "4096"]
        assert main(["gpu", *arguments, "--json", str(path)]) == 0
        assert driver.captured == 2 * 2
    found = json.loads(path.read_text())
    assert [r["section"] for r in found["results"]] == ["products", "memory"]
    assert all(r["seconds"]["relayc"] > 0 and r["facts"]["schedules"] for r in found["results"])
    assert found["machine"]["gpu"]["name"] == "Fake 0" and found["arguments"]["target"].startswith("cuda -arch=sm_80")
    assert "8x8x16 float16" in capsys.readouterr().out
