"""Widgets on Textual's line API: each is a function from its state to lines, and sends only what changed."""
