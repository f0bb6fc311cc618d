/* libcuda.so: by this name, too, no matter who looks for the driver finds the hook, which this library needs. */
typedef int nothing_of_its_own;
