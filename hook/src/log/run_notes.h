/* Lines for the launcher in the run's file of notes, which all processes of the run append to: "PID WORD TEXT".
 *
 *   PID trace NAME       this process has the trace directory NAME
 *   PID no-trace REASON  it launches kernels and can have no trace directory
 *   PID no-engine REASON the probe engine did not answer it
 *   PID stuck NUMBER     its launch of this number does not end
 *   PID unwatched NUMBER REASON
 *                        so does this one, which runs without the watchdog's code for REASON
 *   PID interrupted N NUMBER
 *                        that launch was running when the Nth signal since it was made asked the run to end */
#ifndef TUI_PROBE_RUN_NOTES_H
#define TUI_PROBE_RUN_NOTES_H

/* Opens the file, before the program may go to another root directory or user. */
void run_notes_open(void);

/* Appends a line. Allocates nothing. */
void run_note(const char *word, const char *text);

#endif
