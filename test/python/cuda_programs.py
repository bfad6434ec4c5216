"""Small programs for a FakeDriver, and what the tests of the CUDA runtime share."""

import tvm_ffi

from relayc.dialects.relay import build
from relayc.pipelines.context.target import Target
from relayc.pipelines.driver.compile import compile
from relayc.pipelines.emission.index import Index, linearize
from relayc.pipelines.tir.gpu.launch import launch
from relayc.pipelines.tir.strategy.scheduled import Scheduled, kernel_function


def one_thread_an_element(kernel, target, tuning):
    """Blocks of one thread, one for each element of a result of at most three dimensions; a launch for each result."""
    with kernel_function(kernel) as body:
        for node, output in zip(kernel.results, body.outputs, strict=True):
            with launch(node.shape or (1,), 1) as made, body.evaluator.scope():
                place = [Index.of(block) for block in made.block[: len(node.shape)]]
                body.evaluator.store(body.evaluator.at(node, place), output, linearize(place, node.shape))
    return Scheduled(body.function)


TARGET = Target("cuda", arch="sm_80")


def chain(a, b):
    return [build("multiply", build("add", a, b), a)]


def two_kernels(a):
    """Two kernels where nothing is fused."""
    return [build("multiply", build("exp", a), a)]


def unfused(mod):
    return compile(mod, target=TARGET, opt_level=0)


class Producer:
    """A tensor of another framework: it notes which stream it was asked for."""

    def __init__(self, data):
        self.data, self.asked = data, []

    def __dlpack__(self, *, stream=None, max_version=None):
        self.asked.append(stream)
        return self.data.__dlpack__()

    def __dlpack_device__(self):
        return self.data.__dlpack_device__()


def on_stream(stream):
    """Inside, a stream of device 0 is the thread's."""
    return tvm_ffi.use_raw_stream(tvm_ffi.device("cuda:0"), stream)


def wait(driver, *streams):
    """Waits for streams of device 0."""
    driver.push(driver.context(0))
    for stream in streams:
        driver.wait(stream)
    driver.pop()
