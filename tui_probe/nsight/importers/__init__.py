"""What other profilers leave: files of Nsight Compute and Nsight Systems, read into tables of our own."""
