"""Kernels and a program to try tui-probe on, with a GPU or without one."""
