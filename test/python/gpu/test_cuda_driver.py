"""The calls of the CUDA driver, as far as a machine without one can see: cuda-bindings has each function, and takes what it is given."""

import pytest

from relayc.runtime.cuda.driver import CudaDriver
from relayc.runtime.device import Device

CALLS = {
    "count": (),
    "attributes": (0,),
    "context": (0,),
    "push": (1,),
    "pop": (),
    "allocate": (16, 0),
    "free": (1, 0),
    "trim": (0,),
    "free_bytes": (),
    "copy": (1, 2, 3, 0),
    "copy_in": (1, 2, 3, 0),
    "copy_out": (1, 2, 3, 0),
    "make_stream": (),
    "destroy_stream": (1,),
    "wait": (0,),
    "synchronize": (),
    "make_event": (),
    "destroy_event": (1,),
    "record": (1, 0),
    "follow": (0, 1),
    "elapsed": (1, 2),
    "load_module": (b"code\0",),
    "unload_module": (1,),
    "function": (1, "kernel", 64 << 10),
    "begin_capture": (1,),
    "end_capture": (1,),
    "launch_graph": (1, 0),
    "destroy_graph": (1,),
    "entry_points": (),
}


def test_times_are_in_seconds():
    driver = object.__new__(CudaDriver)
    driver._call = lambda name, *events: 1500.0  # milliseconds
    assert driver.elapsed(1, 2) == 1.5


@pytest.mark.parametrize("name", CALLS)
def test_arguments_reach_the_driver(name):
    bindings = pytest.importorskip("cuda.bindings.driver")
    if Device("cuda").exists:
        pytest.skip("this machine has a GPU")
    driver = object.__new__(CudaDriver)
    driver._cuda, driver._contexts = bindings, {}
    # Arguments that do not fit are a TypeError, before the driver is looked for.
    with pytest.raises(RuntimeError, match="NVIDIA driver library"):
        getattr(driver, name)(*CALLS[name])
