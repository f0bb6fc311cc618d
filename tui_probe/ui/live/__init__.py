"""Live screen: the feed of a running program, the kernel table, and pages about the selection."""
