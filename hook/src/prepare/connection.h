/* Connections to the probe engine. One question at a time goes over a connection; each thread that asks has one to
 * itself meanwhile. Functions that fail set errno. */
#ifndef TUI_PROBE_CONNECTION_H
#define TUI_PROBE_CONNECTION_H

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

struct connection;

enum { LINE_LIMIT = 4096 };

/* A connection that no thread has, connected or not. NULL without memory. */
struct connection *connection_take(void);
void connection_give_back(struct connection *connection);

/* The number of its question: another one each time that it is taken. */
unsigned connection_id(const struct connection *connection);

/* No thread reads the answers until connection_resume, by which this one does. False if too many have answers to come:
 * then its own are waited for. */
bool connection_set_later(struct connection *connection);
void connection_resume(struct connection *connection);

/* Connects to the engine, unless that is done. False if it does not answer a first message. */
bool connection_open(struct connection *connection);
void connection_close(struct connection *connection);

/* A question of this THREAD that is under way is answered with a failure now, "still being prepared". */
void connection_interrupt(pthread_t thread);
bool connection_was_interrupted(struct connection *connection);

/* LINE with its newline. */
bool connection_send(struct connection *connection, const struct timespec *deadline, const char *line);

/* Reads up to the next newline, which is cut off. */
bool connection_read_line(struct connection *connection, const struct timespec *deadline, char line[LINE_LIMIT]);

void connection_reset(void);

#endif
