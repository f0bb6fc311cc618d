/* libtui-probe-driver.so: the hook needs a library of this name. The audit library gives it the driver; without that it
 * gets this one, and names that the hook lacks are not found. */
typedef int nothing_of_its_own;
