"""The picture of a launch's memory accesses: address space by time."""
