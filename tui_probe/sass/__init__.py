"""Machine code of NVIDIA GPUs, in cubins: read, laid out anew, and grafted into."""
