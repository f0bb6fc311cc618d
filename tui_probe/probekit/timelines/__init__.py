"""Timelines of a launch: their rows, how busy these are, and how they are drawn."""
