"""A simulated GPU: the half that reads and executes PTX. The other half is a driver in C, ``hook/simgpu``."""
