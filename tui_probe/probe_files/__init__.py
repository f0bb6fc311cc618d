"""The files in which probes are written: where they are, and a probe out of each, whatever its language."""
