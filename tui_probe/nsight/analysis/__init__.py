"""Analysis of files of other profilers: kernels, ranges, gaps, traffic."""
