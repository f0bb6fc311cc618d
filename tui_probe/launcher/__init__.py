"""Starts a target under the hook driver: environment, streams, signals, exit status, and what the run leaves."""
