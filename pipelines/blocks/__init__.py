"""Blocks and loops: the form between te and tir in which people schedule a kernel (see relayc.dialects.tir)."""
