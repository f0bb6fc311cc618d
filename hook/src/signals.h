/* Signals that would end the program before its records are on disk. */
#ifndef TUI_PROBE_SIGNALS_H
#define TUI_PROBE_SIGNALS_H

#include <stdbool.h>

/* SIGTERM, SIGINT and SIGHUP, where the program leaves them to the system, first call END on a thread of
 * ours and then end the process as they would have. The interrupted thread stops meanwhile, 0.4 s at most. TELL is for signals_tell. */
void signals_watch(void (*end)(void), void (*tell)(void));

/* Has that thread call TELL. Safe in a signal handler. */
void signals_tell(void);

/* Between these two a signal does not stop the calling thread, for it may hold what END needs; the second
 * one then does. They nest. */
static inline void signals_hold(void);
static inline void signals_release(void);

/* Whether the calling thread is between the two: a handler of a signal then runs in the middle of a launch. */
static inline bool signals_is_held(void);

struct signal_state {
    int held;
    bool deferred;
};

extern _Thread_local struct signal_state signal_state __attribute__((tls_model("initial-exec")));
void signals_stop_here(void);

/* Would this signal, one of the three, end the process now without a word to us? */
bool signals_end_process(int signal_number);

/* The signal that has come and ends the process; 0 before. */
int signals_pending(void);
void signals_wait_for_end(void) __attribute__((noreturn));

static inline void signals_hold(void)
{
    *(volatile int *)&signal_state.held += 1;
}

static inline void signals_release(void)
{
    *(volatile int *)&signal_state.held -= 1;
    if (*(volatile bool *)&signal_state.deferred && signal_state.held == 0) {
        signal_state.deferred = false;
        signals_stop_here();
    }
}

static inline bool signals_is_held(void)
{
    return *(volatile int *)&signal_state.held > 0;
}

#endif
