"""Measurements of speed, memory and compilation, of relayc and of other engines: `python -m relayc.bench`.

README.md in this folder describes what each command measures, and how. The optional extra `relayc[bench]` installs the other engines.
"""
