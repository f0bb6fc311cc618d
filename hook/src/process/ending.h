/* End of the trace: the last records are saved and the final lines of event.log written, however the process
 * ends. Only the process that owns the trace ends it: a child may run exit handlers, too. */
#ifndef TUI_PROBE_ENDING_H
#define TUI_PROBE_ENDING_H

#include <stdbool.h>

/* Makes the calling process the owner: to be called when the hook is loaded, and in a child after fork. */
void ending_reset(void);

/* False in a child that shares memory with its parent (vfork): only its process id differs. */
bool ending_is_owner(void);

/* The exit status that the program has given. */
void ending_set_status(int status);

/* The lines at the end of event.log, from which readers know that it is complete. Takes locks. */
void ending_write_final_lines(void);

/* The same, unless the drain thread has written them or begun to. */
void ending_write_unclaimed_final_lines(void);

/* For exit handlers that come before those of the runtime libraries, which take their contexts down: saves the launches
 * so far. The trace continues, since handlers that were registered earlier, and destructors, may launch, too. */
void ending_save_at_exit(void);

/* For the last exit handler. */
void ending_at_exit(void);

/* For _exit and its like, which run no exit handlers. May be called in a signal handler. */
void ending_immediately(int status);

/* For the thread of signals, while all threads of the program are stopped. */
void ending_at_signal(void);

/* Before the program is replaced, and after a replacement that failed: then the trace continues. */
void ending_before_exec(void);
void ending_after_failed_exec(void);

#endif
