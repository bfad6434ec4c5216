"""Measurements of speed, memory and compilation, of relayc and of other engines: `python -m relayc.bench`.

See README.md beside this file for what each command measures, and how. Other engines come with the optional extra `relayc[bench]`.
"""
