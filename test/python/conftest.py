"""Settings of all tests."""

import os

# Tests compile what they test: the on-disk cache is off but for its own tests.
os.environ["RELAYC_CACHE"] = "0"
