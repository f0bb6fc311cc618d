/* CUDA drivers that are in this process and not called by us: opened in another list of libraries (dlmopen), by a
 * library that finds the C library's dlopen before ours (RTLD_DEEPBIND), or under a path of their own. What is launched
 * through them is not seen. */
#ifndef TUI_PROBE_UNSEEN_DRIVERS_H
#define TUI_PROBE_UNSEEN_DRIVERS_H

/* Adds a line "PID PATH" for each such driver to the file of the settings, once; where there is none, does nothing.
 * Takes no lock and allocates nothing. */
void unseen_drivers_report(void);

/* In a child of fork. */
void unseen_drivers_reset(void);

#endif
