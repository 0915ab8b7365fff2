/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Client of DPDK's telemetry sockets (SOCK_SEQPACKET: a greeting, then one answer per request).
 */
#include "machine/telemetry_client.h"

#include "system/own_path.h"
#include "machine/rundir.h"
#include "machine/silent.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define ANSWER   65536
#define QUESTION 1024 /* longest request that DPDK reads */
#define ANSWER_S 10
#define LAST_MS  100 /* timeout per process once the time of all is used up */

static int open_once(const char *dir, const char *proc, unsigned ms)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    char greeting[1]; /* SOCK_SEQPACKET drops the rest of it */
    int fd;

    if (snprintf(un.sun_path, sizeof(un.sun_path), "%s/dpdk/%s/dpdk_telemetry.v2", dir, proc) >=
        (int)sizeof(un.sun_path))
        return -ENAMETOOLONG;
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
    errno = 0;
    if (connect(fd, (struct sockaddr *)&un, sizeof(un)) ||
        recv(fd, greeting, sizeof(greeting), 0) <= 0) {
        int err = errno ? errno : ECONNRESET;

        close(fd);
        return -err;
    }
    return fd;
}

/* A server with too many clients may drop one before it could ask: tries again. */
#define TRIES 5

static int open_within(const char *dir, const char *proc, unsigned ms)
{
    int fd = -ECONNRESET;

    if (silent_is_stopped(dir, proc))
        return -EAGAIN; /* a stopped process cannot answer */
    for (unsigned i = 0; i < TRIES && fd == -ECONNRESET; i++)
        fd = open_once(dir, proc, ms);
    return fd;
}

int telemetry_client_open(const char *dir, const char *proc, unsigned seconds)
{
    return open_within(dir, proc, 1000 * seconds);
}

json_t *telemetry_client_ask(int fd, const char *cmd, const char *params)
{
    char answer[ANSWER]; /* on the stack: threads ask at the same time */
    char question[QUESTION];
    json_t *all, *value = NULL;
    ssize_t n;
    void *it;

    snprintf(question, sizeof(question), "%s%s%s", cmd, params ? "," : "", params ? params : "");
    if (send(fd, question, strlen(question), MSG_NOSIGNAL) < 0)
        return NULL;
    n = recv(fd, answer, sizeof(answer), 0);
    all = n > 0 ? json_loadb(answer, (size_t)n, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    it = all ? json_object_iter(all) : NULL;
    if (it)
        value = json_incref(json_object_iter_value(it));
    json_decref(all);
    return value;
}

static bool is_list(const char *cmd)
{
    return !strcmp(cmd, "/trib/ports") || !strcmp(cmd, "/trib/links") || !strcmp(cmd, "/trib/an");
}

void telemetry_client_proc(json_t *out, int fd, const char *proc, const char *cmd)
{
    json_t *v = telemetry_client_ask(fd, cmd, NULL), *e;
    size_t i;

    if (!is_list(cmd) || !json_is_array(v)) {
        json_object_set_new(out, proc, v ? v : json_null());
        return;
    }
    json_array_foreach(v, i, e)
    {
        json_t *one = telemetry_client_ask(fd, cmd, json_string_value(e));

        json_object_set_new(out, json_string_value(e), one ? one : json_null());
    }
    json_decref(v);
}

/* Whether no process executed the command: every answer is an error, empty, or refers to another process.
 * A process with an empty list adds no entries, and does not count as failed. */
static bool all_failed(const json_t *out)
{
    const char *key;
    json_t *v;

    if (!json_object_size(out))
        return false;
    json_object_foreach((json_t *)out, key, v) if (!json_is_null(v) &&
                                                   !json_object_get(v, "error") &&
                                                   !json_object_get(v, "elsewhere")) return false;
    return true;
}

bool telemetry_client_names(const char *file, char *name, size_t size)
{
    size_t len = strlen(file);

    if (len < 7 || len - 6 >= size || strcmp(file + len - 6, ".ready") != 0)
        return false;
    snprintf(name, size, "%.*s", (int)len - 6, file);
    return true;
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Prints to stderr, if the program has a name. */
__attribute__((format(printf, 2, 3))) static void complain(const char *program, const char *fmt,
                                                           ...)
{
    va_list ap;

    if (!program)
        return;
    fprintf(stderr, "%s: ", program);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
}

struct telemetry_query {
    const char *program, *dir, *proc, *cmd;
    int64_t left_ms; /* time left for silent processes together */
    unsigned asked, silent;
    json_t *out;
};

/* Whether a comma-separated list contains the word. */
static bool listed(const char *list, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = list; at && (at = strstr(at, word)) != NULL; at++)
        if ((at == list || at[-1] == ',') && (!at[n] || at[n] == ','))
            return true;
    return false;
}

/* Queries the process of a .ready file, unless it is not q->proc or is in skip. */
static void query_file(struct telemetry_query *q, const char *file, const char *skip)
{
    int64_t from = now_ms();
    char name[256], why[SILENT_WHY];
    int fd;

    if (!telemetry_client_names(file, name, sizeof(name)) ||
        (q->proc && strcmp(q->proc, name) != 0) || listed(skip, name))
        return;
    q->asked++;
    fd = open_within(q->dir, name, (unsigned)(q->left_ms > LAST_MS ? q->left_ms : LAST_MS));
    if (fd < 0) {
        silent_why(q->dir, name, fd, why, sizeof(why));
        complain(q->program, "%s\n", why);
        q->left_ms -= now_ms() - from;
        q->silent++;
        return;
    }
    telemetry_client_proc(q->out, fd, name, q->cmd);
    close(fd);
}

int telemetry_client_gather(const char *program, const char *dir, const char *cmd,
                            const struct telemetry_whom *whom, json_t **answers)
{
    json_t *out = *answers = json_object();
    struct telemetry_query q = {.program = program,
                                .dir = dir,
                                .proc = whom->proc,
                                .cmd = cmd,
                                .left_ms = 1000 * (whom->seconds ? whom->seconds : ANSWER_S),
                                .out = out};
    char path[RUN_PATH + 16], why[OWN_WHY];
    struct dirent *e;
    int rc;
    DIR *d;

    rc = own_dir_open(dir, false, why, sizeof(why));
    if (rc >= 0)
        close(rc);
    if (rc == -EPERM) {
        complain(program, "run directory %s\n", why);
        return -EPERM;
    }
    if (strlen(cmd) >= QUESTION) {
        complain(program, "found a command of %zu characters, expected at most %d\n", strlen(cmd),
                 QUESTION - 1);
        return -EMSGSIZE;
    }
    snprintf(path, sizeof(path), "%s/proc", dir);
    d = opendir(path);
    while (d && (e = readdir(d)))
        query_file(&q, e->d_name, whom->skip);
    if (d)
        closedir(d);
    if (!q.asked && !whom->skip)
        complain(program, "found no running process%s%s in %s\n", q.proc ? " " : "",
                 q.proc ? q.proc : "", dir);
    return q.asked == q.silent || all_failed(out);
}

int telemetry_client_query(const char *program, const char *dir, const char *cmd,
                           const struct telemetry_whom *whom)
{
    json_t *out;
    int rc = telemetry_client_gather(program, dir, cmd, whom, &out);

    if (rc >= 0) {
        json_dumpf(out, stdout, JSON_INDENT(1) | JSON_SORT_KEYS);
        putchar('\n');
    }
    json_decref(out);
    return rc ? 1 : 0;
}

/* Sets the dilation at the process that made the clock; -ENOENT: that is another process. */
static int set_dilation_at(const char *dir, const char *proc, unsigned n)
{
    int fd = telemetry_client_open(dir, proc, ANSWER_S), rc = -EIO;
    char text[16];
    json_t *v;

    if (fd < 0)
        return fd;
    snprintf(text, sizeof(text), "%u", n);
    v = telemetry_client_ask(fd, "/trib/dilation", text);
    if (json_integer_value(json_object_get(v, "dilation")) == (json_int_t)n)
        rc = 0;
    else if (json_object_get(v, "elsewhere"))
        rc = -ENOENT;
    json_decref(v);
    close(fd);
    return rc;
}

int telemetry_client_set_dilation(const char *program, const char *dir, unsigned n)
{
    char path[RUN_PATH + 16], name[256];
    int rc = -ENOENT;
    struct dirent *e;
    DIR *d;

    snprintf(path, sizeof(path), "%s/proc", dir);
    d = opendir(path);
    while (rc && d && (e = readdir(d)))
        if (telemetry_client_names(e->d_name, name, sizeof(name)))
            rc = set_dilation_at(dir, name, n);
    if (d)
        closedir(d);
    if (rc)
        fprintf(stderr, "%s: no process of %s sets dilation %u: %s\n", program, dir, n,
                rc == -ENOENT ? "the one that had the clock has ended" : strerror(-rc));
    return rc;
}
