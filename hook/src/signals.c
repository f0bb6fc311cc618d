#include "signals.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "threads.h"

enum { STOP_MS = 400, STOP_STEP_MS = 10, FAULT_MS = 2000 };

_Thread_local struct signal_state signal_state;

/* Those that end a process of themselves, from outside or by a timer. */
static const int watched[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU};

/* Those of an instruction, and of abort: once the records are saved, the thread goes on and ends as without us. */
static const int faults[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
enum { N_WATCHED = sizeof watched / sizeof *watched, N_FAULTS = sizeof faults / sizeof *faults };

static sem_t arrived;
static atomic_int pending;
static atomic_bool saved;
static pid_t owner;
static void (*end)(void), (*tell)(void);

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
    syscall(SYS_kill, getpid(), signal_number); /* kill is a wrapper of ours, which would save records first */
}

bool signals_end_process(int signal_number)
{
    struct sigaction present;
    for (size_t i = 0; i < N_WATCHED; i++)
        if (watched[i] == signal_number)
            return sigaction(signal_number, NULL, &present) == 0 && !(present.sa_flags & SA_SIGINFO) &&
                   present.sa_handler == SIG_DFL;
    return false;
}

int signals_pending(void)
{
    return getpid() == owner ? atomic_load(&pending) : 0;
}

/* A signal may have come in the middle of a driver's function that holds what saving the records needs:
 * such a thread must go on in the end. */
void signals_stop_here(void)
{
    struct timespec rest = {0, STOP_STEP_MS * 1000000L};
    for (int waited = 0; waited < STOP_MS; waited += STOP_STEP_MS)
        nanosleep(&rest, NULL);
}

void signals_wait_for_end(void)
{
    for (;;)
        pause();
}

static void note(int signal_number)
{
    int before = errno;
    if (getpid() != owner) { /* a forked child has no thread to wake */
        die_of(signal_number);
    } else {
        atomic_store(&pending, signal_number);
        sem_post(&arrived);
        if (signal_state.held == 0)
            signals_stop_here();
        else
            signal_state.deferred = true;
    }
    errno = before;
}

/* Whatever the thread was in the middle of, it can only end. */
static void note_fault(int signal_number, siginfo_t *information, void *unused)
{
    (void)unused;
    const struct timespec rest = {0, STOP_STEP_MS * 1000000L};
    int none = 0;
    if (getpid() == owner && atomic_compare_exchange_strong(&pending, &none, signal_number))
        sem_post(&arrived);
    for (int waited = 0; getpid() == owner && waited < FAULT_MS && !atomic_load(&saved); waited += STOP_STEP_MS)
        nanosleep(&rest, NULL);
    set_default(signal_number);
    if (information->si_code <= 0) /* somebody sent it: no instruction brings it anew */
        syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), signal_number);
}

static bool is_fault(int signal_number)
{
    for (size_t i = 0; i < N_FAULTS; i++)
        if (faults[i] == signal_number)
            return true;
    return false;
}

static void *wait_for_signal(void *unused)
{
    (void)unused;
    while (!atomic_load(&pending))
        if (sem_wait(&arrived) == 0 && !atomic_load(&pending))
            tell();
    end();
    if (!is_fault(atomic_load(&pending)))
        die_of(atomic_load(&pending));
    atomic_store(&saved, true);
    return NULL;
}

void signals_tell(void)
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

void signals_watch(void (*end_process)(void), void (*tell_in_a_thread)(void))
{
    owner = getpid();
    end = end_process;
    tell = tell_in_a_thread;
    if (sem_init(&arrived, 0, 0) != 0 || !thread_start(wait_for_signal))
        return;
    for (size_t i = 0; i < N_WATCHED; i++)
        watch(watched[i], (struct sigaction){.sa_handler = note});
    for (size_t i = 0; i < N_FAULTS; i++)
        watch(faults[i], (struct sigaction){.sa_sigaction = note_fault, .sa_flags = SA_SIGINFO});
}
