"""Has Parameter once the package is imported."""
