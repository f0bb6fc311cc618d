/* Hashes of the memory that parameters point to, after launches of chosen kernels: what runs with delays are compared by.
 */
#ifndef TUI_PROBE_MEMORY_HASH_H
#define TUI_PROBE_MEMORY_HASH_H

struct kernel;
struct launch;

/* If the run asks for it, waits for LAUNCH, which has just been made, and logs a hash for each address in its
 * parameters: of the allocation from there on. */
void memory_hash_log(const struct launch *launch, const struct kernel *kernel);

#endif
