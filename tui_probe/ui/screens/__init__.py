"""Screens: the live screen, the page of keys, and small questions."""
