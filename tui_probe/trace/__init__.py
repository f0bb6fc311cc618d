"""What a run leaves on disk: logs, kernels and results, as typed records and NumPy arrays."""
