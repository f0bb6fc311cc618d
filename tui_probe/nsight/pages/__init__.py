"""Pages about files of other profilers: documents and drawings that need no trace of tui-probe."""
