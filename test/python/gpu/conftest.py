"""Fixtures of the tests of GPUs."""

import pytest
from cuda_programs import one_thread_an_element
from fake_cuda import fake_cuda
from gpu_kernels import strategy


@pytest.fixture
def driver():
    """A FakeDriver of one device, on which each element of a result has a thread."""
    with fake_cuda() as found, strategy(one_thread_an_element):
        yield found
