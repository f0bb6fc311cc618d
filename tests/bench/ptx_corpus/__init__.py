"""A corpus of kernels in PTX, built from what packages on PyPI hold; nothing of it is kept in the repository."""
