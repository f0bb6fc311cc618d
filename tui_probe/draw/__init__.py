"""Spans, tables, units, canvas, axes, palettes: how things are drawn. No knowledge of probes."""
