"""Check of a probe on the kernels of a file, without a GPU."""
