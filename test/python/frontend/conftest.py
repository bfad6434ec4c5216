"""The tests compile and run many small programs, one after the other."""

import os

# Threads of the OpenMP runtime otherwise spin for 0.2 s after every run, in the way of the next compilation.
os.environ.setdefault("KMP_BLOCKTIME", "0")
