"""Parts of a probe: metrics, findings, line measures, pages, and how its results are read; the registry of probes."""
