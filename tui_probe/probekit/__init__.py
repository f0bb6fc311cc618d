"""What a probe is made of beside its PTX: metrics, findings, measures of lines, views, and how its results are read."""
