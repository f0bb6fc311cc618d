#define _GNU_SOURCE
#include "signals.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "system_call.h"
#include "threads.h"

/* A handler may not wait on a lock, so it sleeps in steps. FAULT_MS: the records of a crash are worth a pause, but a
 * fault inside the hook itself may keep the saving thread from ever finishing. */
enum { STOP_STEP_MS = 10, FAULT_MS = 2000 };

_Thread_local struct signal_state signal_state;

/* Those that end a process of themselves, from outside or by a timer. */
static const int watched[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU};

/* Those of an instruction, and of abort: once the records are saved, the thread continues and ends as without us. */
static const int faults[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
enum { N_WATCHED = sizeof watched / sizeof *watched, N_FAULTS = sizeof faults / sizeof *faults };

static sem_t arrived;
static atomic_int pending;
static atomic_int faulting; /* the thread whose fault it is, which ends the process once the records are saved */
static atomic_bool saved, let_go;
static pid_t owner;
static void (*end)(void), (*write_final_lines)(void);

static void set_default(int signal_number)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigaction(signal_number, &action, NULL);
}

static void die_of(int signal_number)
{
    sigset_t only;
    set_default(signal_number);
    sigemptyset(&only);
    sigaddset(&only, signal_number);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
    system_call(SYS_kill, getpid(), signal_number,
                0); /* kill is a wrapper of tui-probe, which would save records first */
}

int signals_pending(void)
{
    return getpid() == owner ? atomic_load(&pending) : 0;
}

void signals_stop_here(void)
{
    const struct timespec step = {0, STOP_STEP_MS * 1000000L};
    while (!atomic_load(&let_go))
        nanosleep(&step, NULL);
}

void signals_let_go(void)
{
    atomic_store(&let_go, true);
}

void signals_wait_for_end(void)
{
    for (;;)
        pause();
}

static void note(int signal_number)
{
    int before = errno, none = 0;
    if (getpid() != owner) { /* a forked child has no thread to wake */
        die_of(signal_number);
    } else {
        if (atomic_compare_exchange_strong(&pending, &none, signal_number))
            sem_post(&arrived);
        if (signal_state.held == 0)
            signals_stop_here();
        else
            signal_state.deferred = true;
    }
    errno = before;
}

/* The thread can only end, in the middle of anything. */
static void note_fault(int signal_number, siginfo_t *information, void *unused)
{
    (void)unused;
    const struct timespec step = {0, STOP_STEP_MS * 1000000L};
    int none = 0;
    if (getpid() == owner && atomic_compare_exchange_strong(&pending, &none, signal_number)) {
        atomic_store(&faulting, gettid());
        sem_post(&arrived);
    }
    for (int waited = 0; getpid() == owner && waited < FAULT_MS && !atomic_load(&saved); waited += STOP_STEP_MS)
        nanosleep(&step, NULL);
    set_default(signal_number);
    if (information->si_code <= 0) /* someone sent it: no instruction brings it anew */
        system_call(SYS_tgkill, getpid(), gettid(), signal_number);
}

static bool is_fault(int signal_number)
{
    for (size_t i = 0; i < N_FAULTS; i++)
        if (faults[i] == signal_number)
            return true;
    return false;
}

/* A signal whose handler stops a thread; 0 if the program has handlers of its own for all. */
static int stopping_signal(void)
{
    struct sigaction present;
    const int first = atomic_load(&pending);
    if (sigaction(first, NULL, &present) == 0 && present.sa_handler == note)
        return first;
    for (size_t i = 0; i < N_WATCHED; i++)
        if (sigaction(watched[i], NULL, &present) == 0 && present.sa_handler == note)
            return watched[i];
    return 0;
}

static void stop(int thread, void *signal_number)
{
    if (thread != atomic_load(&faulting))
        system_call(SYS_tgkill, getpid(), thread, *(int *)signal_number);
}

/* The system would have ended all threads of the program with the signal: none of them continues while records are
 * saved. */
static void stop_all(void)
{
    int signal_number = stopping_signal();
    if (signal_number)
        threads_each_other(stop, &signal_number);
}

static void *wait_for_signal(void *unused)
{
    (void)unused;
    while (!atomic_load(&pending))
        if (sem_wait(&arrived) == 0 && !atomic_load(&pending))
            write_final_lines();
    stop_all();
    end();
    if (!is_fault(atomic_load(&pending)))
        die_of(atomic_load(&pending));
    atomic_store(&saved, true);
    return NULL;
}

void signals_request_final_lines(void)
{
    sem_post(&arrived);
}

/* A handler of the program's stays. */
static void watch(int signal_number, struct sigaction ours)
{
    struct sigaction present;
    ours.sa_flags |= SA_RESTART | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    if (sigaction(signal_number, NULL, &present) == 0 && !(present.sa_flags & SA_SIGINFO) &&
        present.sa_handler == SIG_DFL)
        sigaction(signal_number, &ours, NULL);
}

/* True if the system ends a process for it, where no one handles it. */
static bool is_deadly(int signal_number)
{
    switch (signal_number) {
    case SIGKILL: /* which has no handler */
    case SIGSTOP:
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
    case SIGCONT:
    case SIGCHLD:
    case SIGURG:
    case SIGWINCH:
        return false;
    default:
        return true;
    }
}

void signals_expect(int signal_number)
{
    const int error = errno;
    if (getpid() != owner || atomic_load(&pending) || !is_deadly(signal_number))
        return;
    if (is_fault(signal_number))
        watch(signal_number, (struct sigaction){.sa_sigaction = note_fault, .sa_flags = SA_SIGINFO});
    else
        watch(signal_number, (struct sigaction){.sa_handler = note});
    errno = error;
}

void signals_watch(void (*end_process)(void), void (*final_lines_writer)(void))
{
    owner = getpid();
    end = end_process;
    write_final_lines = final_lines_writer;
    if (sem_init(&arrived, 0, 0) != 0 || !thread_start(wait_for_signal))
        return;
    for (size_t i = 0; i < N_WATCHED; i++)
        watch(watched[i], (struct sigaction){.sa_handler = note});
    for (size_t i = 0; i < N_FAULTS; i++)
        watch(faults[i], (struct sigaction){.sa_sigaction = note_fault, .sa_flags = SA_SIGINFO});
}
