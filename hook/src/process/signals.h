/* Signals that would end the program before its records are on disk. */
#ifndef TUI_PROBE_SIGNALS_H
#define TUI_PROBE_SIGNALS_H

#include <pthread.h>
#include <stdbool.h>

/* SIGTERM, SIGINT, SIGHUP and the like, where the program leaves them to the system, first call END on a hook thread
 * and then end the process as they would have. All threads of the program stop meanwhile. WRITE_FINAL_LINES is for
 * signals_request_final_lines. */
void signals_watch(void (*end)(void), void (*write_final_lines)(void));

/* Has that thread call WRITE_FINAL_LINES. Safe in a signal handler. */
void signals_request_final_lines(void);

/* Between these two a signal does not stop the calling thread, for it may hold what END needs; the second
 * one then does. They nest. */
static inline void signals_hold(void);
static inline void signals_release(void);

/* True if the calling thread is between the two: a handler of a signal then runs in the middle of a launch. */
static inline bool signals_is_held(void);

struct signal_state {
    int held;
    bool deferred;
};

extern _Thread_local struct signal_state signal_state __attribute__((tls_model("initial-exec")));
void signals_stop_here(void);

/* The stopped threads continue: one of them may have been stopped with a lock that saving the records waits for. */
void signals_let_go(void);

/* The program is about to send itself this signal, which it may have given back to the system since. Where that would
 * end the process, it is watched again; one that is blocked stays as it is, and so does what the program does
 * with it. */
void signals_expect(int signal_number);

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

/* Locks a mutex that END may need, too. */
static inline void signals_lock(pthread_mutex_t *mutex)
{
    signals_hold();
    pthread_mutex_lock(mutex);
}

static inline void signals_unlock(pthread_mutex_t *mutex)
{
    pthread_mutex_unlock(mutex);
    signals_release();
}

#endif
