"""Code of a kernel as lines: alignment of two texts, SASS, colors, and measures next to each line."""
