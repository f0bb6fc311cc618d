"""Numbers from the records of a launch, as several probes need them: sums, sites, block times, clocks, timelines."""
