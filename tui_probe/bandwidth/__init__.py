"""Measured bandwidth of a machine's memories: the ceiling that a kernel's own figures are read against."""
