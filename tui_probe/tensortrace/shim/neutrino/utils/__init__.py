"""What a program to be profiled uses of ``neutrino.utils``."""
