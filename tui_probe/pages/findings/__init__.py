"""What the probe of a kernel found in a launch, in a few lines, and which probe answers what it leaves open."""
