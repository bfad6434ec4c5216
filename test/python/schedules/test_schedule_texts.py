"""`module.schedule` and `relayc inspect --stage schedule`: what they show can be passed back."""

import numpy as np
import pytest

import relayc
from relayc import te, tir
from relayc.tools import cli

M, N, K = 37, 48, 29


def product() -> relayc.IRModule:
    a, b, k = te.placeholder((M, K), name="A"), te.placeholder((K, N), name="B"), te.reduce_axis((0, K), "k")
    return te.create_prim_func([a, b, te.compute((M, N), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")])


def tiled(schedule: tir.Schedule) -> None:
    (block,) = schedule.get_blocks()
    i, j, k = schedule.get_loops(block)
    outer, inner = schedule.split(j, [None, schedule.sample_categorical([8, 16], decision=1, name="width")])
    schedule.reorder(i, outer, k, inner)
    schedule.vectorize(inner)


def result(module: relayc.Module) -> np.ndarray:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((M, K), dtype=np.float32), rng.standard_normal((K, N), dtype=np.float32)
    # Sums of 29 products of values around 1: some units in the last place of each term.
    np.testing.assert_allclose(module["main"](a, b), a.astype(np.float64) @ b, rtol=0, atol=2e-5)
    return module["main"](a, b)


def test_blocks_and_trace_of_a_written_schedule_can_be_passed_back() -> None:
    module = relayc.compile(product(), schedules={"main_kernel": tiled})
    text = module.schedule("main_kernel", product())
    head, trace = text.split("# The trace.\n")
    assert head.startswith("# main_kernel: tiled width=16\n") and "T.vectorized(16)" in head
    expected = result(module)
    by_trace = relayc.compile(product(), schedules={"main_kernel": trace})
    assert np.array_equal(result(by_trace), expected)
    by_blocks = relayc.compile(product(), schedules={"main_kernel": tir.from_source(head)})
    assert np.array_equal(result(by_blocks), expected)
    changed = relayc.compile(product(), schedules={"main_kernel": trace.replace("16", "8")})
    result(changed)
    assert "T.vectorized(8)" in changed.schedule("main_kernel", product())


def test_loops_of_a_built_in_strategy_are_shown() -> None:
    module = relayc.compile(product())
    text = module.schedule("main_kernel", product())
    assert text.startswith(f"# main_kernel: {module.kernels[0].schedule}\nfunc.func private @main_kernel(") and "scf.for" in text
    with pytest.raises(KeyError, match="expected a kernel of the module, found 'main_kernl'; did you mean main_kernel"):
        module.schedule("main_kernl")
    with pytest.raises(ValueError, match="schedule: expected the model again"):
        module.schedule("main_kernel")


def test_the_command_line_shows_all_kernels(tmp_path, capsys) -> None:
    path = tmp_path / "product.mlir"
    path.write_text(str(product()))
    assert cli.main(["inspect", str(path), "--stage", "schedule"]) == 0
    assert capsys.readouterr().out == relayc.compile(path).schedule("main_kernel")
