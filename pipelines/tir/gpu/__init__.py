"""Launches of kernels on GPUs, and copies by groups of their threads, as operations of the tir stage."""
