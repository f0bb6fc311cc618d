"""Values of the helpers that snippets may use: ``ADDR``, ``BYTES``, ``NONFINITE``, ``OUTSIDE`` .."""
