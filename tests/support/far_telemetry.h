/* SPDX-License-Identifier: BSD-3-Clause */
/* A process of a run directory, which is a thread that answers telemetry questions as a test says. */
#ifndef TESTS_FAR_TELEMETRY_H
#define TESTS_FAR_TELEMETRY_H

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

struct far_telemetry {
    char dir[96];
    int fd;
    pthread_t thread;
    _Atomic bool over;
    /* Writes the value of the answer; of "/trib/ports,leaf0:1" what is "leaf0:1". */
    void (*answer)(void *ctx, const char *command, const char *what, char *text, size_t size);
    void *ctx;
};

static inline void far_telemetry_serve(struct far_telemetry *t, int fd)
{
    char question[512], value[4096], answer[5000];
    struct pollfd p = {.fd = fd, .events = POLLIN};
    ssize_t n;

    if (send(fd, "{}", 2, MSG_NOSIGNAL) < 0)
        return;
    while (!t->over) {
        char *what;

        if (poll(&p, 1, 5) <= 0)
            continue;
        n = recv(fd, question, sizeof(question) - 1, 0);
        if (n <= 0)
            return;
        question[n] = '\0';
        what = strchr(question, ',');
        if (what)
            *what++ = '\0';
        t->answer(t->ctx, question, what ? what : "", value, sizeof(value));
        n = snprintf(answer, sizeof(answer), "{\"%s\":%s}", question, value);
        send(fd, answer, (size_t)n, MSG_NOSIGNAL);
    }
}

static inline void *far_telemetry_play(void *ctx)
{
    struct far_telemetry *t = ctx;

    while (!t->over) {
        struct pollfd p = {.fd = t->fd, .events = POLLIN};
        int fd = poll(&p, 1, 5) > 0 ? accept(t->fd, NULL, NULL) : -1;

        if (fd >= 0) {
            far_telemetry_serve(t, fd);
            close(fd);
        }
    }
    return NULL;
}

/* A file of the run directory, with the directories above it. */
static inline void far_telemetry_put(const struct far_telemetry *t, const char *name,
                                     const char *text)
{
    char path[256];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", t->dir, name);
    for (char *p = path + strlen(t->dir) + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        mkdir(path, 0700);
        *p = '/';
    }
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* A process of that name in a run directory, which the test sets: t->dir. */
static inline void far_telemetry_begin(struct far_telemetry *t, const char *name)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char file[128];

    t->over = false;
    snprintf(file, sizeof(file), "proc/%s.ready", name);
    far_telemetry_put(t, file, "");
    snprintf(file, sizeof(file), "dpdk/%s/x", name);
    far_telemetry_put(t, file, "");
    assert_true(snprintf(at.sun_path, sizeof(at.sun_path), "%s/dpdk/%s/dpdk_telemetry.v2", t->dir,
                         name) < (int)sizeof(at.sun_path));
    t->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(t->fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(t->fd, 8), 0);
    assert_int_equal(pthread_create(&t->thread, NULL, far_telemetry_play, t), 0);
}

static inline void far_telemetry_end(struct far_telemetry *t)
{
    t->over = true;
    pthread_join(t->thread, NULL);
    close(t->fd);
}

/* In a run directory of its own, under the name of the only process of a fabric. */
static inline void far_telemetry_open(struct far_telemetry *t)
{
    strcpy(t->dir, "/tmp/far_telemetry.XXXXXX");
    assert_non_null(mkdtemp(t->dir));
    far_telemetry_begin(t, "fabric");
}

static inline void far_telemetry_close(struct far_telemetry *t)
{
    char rm[128];

    far_telemetry_end(t);
    snprintf(rm, sizeof(rm), "rm -rf %s", t->dir);
    assert_int_equal(system(rm), 0);
}

#endif
