"""The built-in probes: each is one probe file."""
