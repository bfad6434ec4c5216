"""Calls of programs with small tensors."""

import threading

import numpy as np
import onnx
import pytest
from oracle import values

import relayc

DEPTH = 6


def chain(rows: int):
    """A program of `rows` x 8 numbers with tensors between its kernels: MatMul needs all results of the exponential."""
    steps = "\n".join(f"e{i} = Tanh(m{i})\n m{i + 1} = MatMul(e{i}, w)" for i in range(DEPTH))
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> chain (float[{rows}, 8] x) => (float[{rows}, 8] m{DEPTH}) '
        f"<float[8, 8] w> {{ m0 = MatMul(x, w)\n {steps} }}"
    )
    weights = values((8, 8), seed=3)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    return relayc.compile(model), weights


def expected(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    found = x.astype(np.float64) @ weights
    for _ in range(DEPTH):
        found = np.tanh(found) @ weights
    return found


def test_calls_of_many_threads_share_no_arena():
    module, weights = chain(8)
    calls = module["main"].small_calls
    assert module["main"].fixed_shapes.arena_bytes >= 8 * 8 * 4  # there are tensors between the kernels
    inputs = [values((8, 8), seed=seed) * (seed + 1) for seed in range(6)]
    wrong = []

    def run(x):
        wanted = expected(x, weights)
        for _ in range(400):
            found = np.empty((8, 8), np.float32)
            calls.execute([x], [found])
            if not np.allclose(found, wanted, rtol=1e-4, atol=1e-4):
                wrong.append(found)

    threads = [threading.Thread(target=run, args=(x,)) for x in inputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert 1 <= len(calls._free) <= len(inputs)


def test_small_is_all_memory_of_a_call_together():
    """Inputs, results, the arena and the parameters, up to 4,096 bytes."""
    found = {}
    for rows in (1, 8, 24, 48, 64, 200):
        module, _ = chain(rows)
        function = module["main"]
        total = 2 * rows * 8 * 4 + function.fixed_shapes.arena_bytes + function._arenas.params.numel()
        found[total] = function.small_calls is not None
    assert {small for small in found.values()} == {True, False}
    assert all(small == (total <= 4096) for total, small in found.items())


def test_an_error_leaves_the_next_call_as_it_is():
    module, weights = chain(8)
    calls, x = module["main"].small_calls, values((8, 8), seed=1)
    with pytest.raises(ValueError, match=r"argument 0 'x'.*found float32.4, 8"):
        calls.execute([x[:4].copy()], [np.empty((8, 8), np.float32)])
    found = np.empty((8, 8), np.float32)
    calls.execute([x], [found])
    np.testing.assert_allclose(found, expected(x, weights), rtol=1e-4, atol=1e-4)
    assert len(calls._free) == 1


def test_other_parameters_are_seen():
    model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> f (float[4, 96] x) => (float[4, 96] y) { y = Mul(x, w) }')
    x, weights = values((4, 96)), values((1, 96), seed=3)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    module, found = relayc.compile(model), np.empty((4, 96), np.float32)
    for given in (weights, weights[:, ::-1]):
        module.load_params(dict.fromkeys(module.params, given))
        module["main"].small_calls.execute([x], [found])
        np.testing.assert_array_equal(found, x * given)


def test_a_program_of_symbolic_sizes_is_not_small():
    module = relayc.compile(
        onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> f (float[n, 8] x) => (float[n, 8] y) { y = Tanh(x) }')
    )
    assert module["main"].small_calls is None
