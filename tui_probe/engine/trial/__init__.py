"""Self-test of grafts on the GPU of this machine."""
