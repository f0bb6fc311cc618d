"""Timelines as pictures: their rows, the window on them, and what is drawn in it."""
