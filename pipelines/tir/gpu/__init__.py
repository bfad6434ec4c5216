"""Launches of GPU kernels, and cooperative copies of threads, as operations of the tir stage."""
