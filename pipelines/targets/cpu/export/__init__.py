"""Compiled modules as files that run where relayc is not installed: shared libraries, and objects for static linking."""
