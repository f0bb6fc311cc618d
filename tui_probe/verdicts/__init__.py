"""Verdicts on kernels and runs, for pages, reports and the API: limiter, bounds, findings, changes, coverage."""
