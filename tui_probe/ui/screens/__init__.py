"""Screens: home, pages of a kernel or of imported files, comparisons, help, and lists in front of them."""
