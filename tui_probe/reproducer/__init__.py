"""Saved launches (``run --keep-launch``), and directories that run one of them without tui-probe."""
