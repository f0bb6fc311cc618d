"""What files of other profilers say of a program: kernels, ranges, gaps, traffic."""
