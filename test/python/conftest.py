"""Settings of all tests."""

import os
import zlib

import hypothesis
import pytest

from relayc.pipelines import release_memory

# Tests compile what they test: the on-disk cache is off but for its own tests.
os.environ["RELAYC_CACHE"] = "0"

# What takes long on a busy machine is no fault: speed is measured in bench/.
hypothesis.settings.register_profile("suite", deadline=None)
hypothesis.settings.load_profile("suite")

SHARE = 3
"""Of the cases at symbolic sizes, which each compile kernels of many versions, one in so many runs unless RELAYC_TEST_SYMBOLS is set."""


@pytest.fixture(autouse=True)
def memory_is_kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a compilation leaves in memory serves the next one: to give it back, and to take it again, is a third of a small compilation."""
    if request.path.name != "test_memory.py":
        monkeypatch.setattr(release_memory, "release_memory", lambda contexts: None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "RELAYC_TEST_SYMBOLS" in os.environ:
        return
    left = [item for item in items if _is_case_of_sizes(item) and zlib.crc32(item.name.encode()) % SHARE]
    items[:] = [item for item in items if item not in left]
    config.hook.pytest_deselected(items=left)


def _is_case_of_sizes(item: pytest.Item) -> bool:
    """Whether an item is one of several cases of a test of kernels at symbolic sizes."""
    return item.path.parent.name == "schedule" and item.path.name.startswith("test_symbolic_") and "[" in item.name
