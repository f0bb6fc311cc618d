"""Importers: files of Nsight Compute and Nsight Systems, read into tables."""
