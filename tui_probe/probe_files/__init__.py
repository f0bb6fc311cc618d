"""The files in which probes are written: where they are, and a probe out of each, no matter what its language."""
