"""A measurement of bandwidth as pages: the figures, bars, and the sweep over blocks and bytes in flight."""
