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

enum { STOP_MS = 400, STOP_STEP_MS = 10 };

_Thread_local struct signal_state signal_state;

static const int watched[] = {SIGTERM, SIGINT, SIGHUP};

static sem_t arrived;
static atomic_int pending;
static pid_t owner;
static void (*end)(void), (*tell)(void);

static void die_of(int signal_number)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigset_t only;
    sigaction(signal_number, &action, NULL);
    sigemptyset(&only);
    sigaddset(&only, signal_number);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
    syscall(SYS_kill, getpid(), signal_number); /* kill is a wrapper of ours, which would save records first */
}

bool signals_end_process(int signal_number)
{
    struct sigaction present;
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++)
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

static void *wait_for_signal(void *unused)
{
    (void)unused;
    while (!atomic_load(&pending))
        if (sem_wait(&arrived) == 0 && !atomic_load(&pending))
            tell();
    end();
    die_of(atomic_load(&pending));
    return NULL;
}

void signals_tell(void)
{
    sem_post(&arrived);
}

void signals_watch(void (*end_process)(void), void (*tell_in_a_thread)(void))
{
    owner = getpid();
    end = end_process;
    tell = tell_in_a_thread;
    if (sem_init(&arrived, 0, 0) != 0 || !thread_start(wait_for_signal))
        return;
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++) {
        struct sigaction present, ours = {.sa_handler = note, .sa_flags = SA_RESTART};
        sigemptyset(&ours.sa_mask);
        if (sigaction(watched[i], NULL, &present) == 0 && !(present.sa_flags & SA_SIGINFO) &&
            present.sa_handler == SIG_DFL)
            sigaction(watched[i], &ours, NULL);
    }
}
