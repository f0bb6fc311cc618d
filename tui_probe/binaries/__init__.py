"""Containers of kernels: ELF files, cubins, fatbins, and their line tables."""
