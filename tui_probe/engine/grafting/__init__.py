"""Grafts: a probe inserted into the machine code of a kernel without PTX, by snippets that ptxas assembled."""
