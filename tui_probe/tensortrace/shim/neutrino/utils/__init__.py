"""Members of ``neutrino.utils`` that a program to be profiled uses."""
