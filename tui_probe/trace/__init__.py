"""Files of a run on disk: logs, kernels and results, as typed records and NumPy arrays."""
