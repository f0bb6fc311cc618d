"""Checks of kernels while they run: states of bytes, order of accesses, races, findings."""
