"""Benchmarks: each is a command that prints ratios against a baseline measured in the same run."""
