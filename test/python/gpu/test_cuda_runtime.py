"""Programs on NVIDIA's GPUs from the caller's side, over a driver that tests have: see fake_cuda."""

import threading

import numpy as np
import pytest
import tvm_ffi
from fake_cuda import fake_cuda
from gpu_kernels import strategy
from oracle import values
from support import program
from symbolic_ops import symbolic_program, tensor

import relayc
from relayc.dialects.relay import build
from relayc.pipelines.driver import compile
from relayc.pipelines.gpu.launch import launch
from relayc.pipelines.kernel.index import Index, linearize
from relayc.pipelines.schedule.strategy import Scheduled, kernel_body
from relayc.pipelines.target import Target
from relayc.runtime.device import Device, DeviceError, DeviceMemoryError
from relayc.runtime.tensor import Tensor
from relayc.symbolic import Range


def one_thread_an_element(kernel, target, tuning):
    """Blocks of one thread, one for each element of a result of at most three dimensions; a launch for each result."""
    with kernel_body(kernel) as body:
        for node, output in zip(kernel.results, body.outputs, strict=True):
            with launch(node.shape or (1,), 1) as made, body.evaluator.scope():
                place = [Index.of(block) for block in made.block[: len(node.shape)]]
                body.evaluator.store(body.evaluator.at(node, place), output, linearize(place, node.shape))
    return Scheduled(body.function)


@pytest.fixture
def driver():
    with fake_cuda() as found, strategy(one_thread_an_element):
        yield found


TARGET = Target("cuda")


def _chain(a, b):
    return [build("multiply", build("add", a, b), a)]


def _two_kernels(a):
    return [build("sum", build("exp", a), axis=[1])]


def test_arrays_go_in_and_come_out(driver):
    x, y = values((3, 5)), values((3, 5), seed=1)
    module = compile(program(_chain, [x, y]), target=TARGET)
    assert str(module.device) == "cuda:0" and module.records
    for _ in range(2):
        found = module["main"](x, y)
        assert isinstance(found, np.ndarray)
        np.testing.assert_allclose(found, (x + y) * x, rtol=1e-6)


def test_tensors_of_the_device_stay_there_and_nothing_is_waited_for(driver):
    x, y = values((3, 5)), values((3, 5), seed=1)
    module = compile(program(_chain, [x, y]), target=TARGET)
    module.records = False
    given = [Device("cuda").tensor(array) for array in (x, y)]
    main = module["main"]
    main(*given)  # parameters and code are on the device from now on
    waits, launches = driver.waits, len(driver.launches)
    found = main(*given)
    assert isinstance(found, Tensor) and found.device == Device("cuda:0") and found.shape == (3, 5)
    assert driver.waits == waits and len(driver.launches) == launches
    np.testing.assert_allclose(found.numpy(), (x + y) * x, rtol=1e-6)
    assert len(driver.launches) == launches + 2  # of both calls, when somebody waits
