/* SPDX-License-Identifier: BSD-3-Clause */
#include "machine/link_reader.h"

#include "machine/telemetry_client.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define UNREAD   UINT64_MAX
#define WAIT_S   2 /* timeout of an answer */
#define QUESTION "/trib/link_bytes"

static uint16_t direction_sender(const struct fabric *f, unsigned d)
{
    return d & 1 ? f->links[d / 2].b : f->links[d / 2].a;
}

/* Takes one answer: pairs of direction and bytes, in ascending order from `next` on. Returns the
 * direction to ask for next; 0: there are no more; -EPROTO: the answer is malformed. */
static int64_t link_reader_take(const struct fabric *f, const json_t *pairs, int64_t next,
                                uint64_t *sent)
{
    size_t n = json_array_size(pairs);

    if (!json_is_array(pairs) || n % 2)
        return -EPROTO;
    for (size_t i = 0; i < n; i += 2) {
        json_int_t d = json_integer_value(json_array_get(pairs, i));

        if (d < next || d >= 2 * (json_int_t)f->n_links)
            return -EPROTO;
        sent[d] = (uint64_t)json_integer_value(json_array_get(pairs, i + 1));
        next = d + 1;
    }
    return n == 2 * LINK_READER_PAGE ? next : 0;
}

int link_reader_ask(int fd, const struct fabric *f, uint64_t *sent)
{
    int64_t next = 0;
    char first[24];

    do {
        json_t *pairs;

        snprintf(first, sizeof(first), "%lld", (long long)next);
        pairs = telemetry_client_ask(fd, QUESTION, first);
        next = pairs ? link_reader_take(f, pairs, next, sent) : -ETIMEDOUT;
        json_decref(pairs);
    } while (next > 0);
    return (int)next;
}

static int read_process(const struct rundir *rd, const char *proc, const struct fabric *f,
                        uint64_t *sent)
{
    int rc, fd = telemetry_client_open(rd->path, proc, WAIT_S);

    if (fd < 0)
        return fd;
    rc = link_reader_ask(fd, f, sent);
    close(fd);
    return rc;
}

/* Reads every process that is ready. */
static int read_processes(const struct rundir *rd, const struct fabric *f, uint64_t *sent,
                          char *why, size_t size)
{
    char path[RUN_PATH + 16], name[256];
    struct dirent *e;
    int rc = 0;
    DIR *d;

    snprintf(path, sizeof(path), "%s/proc", rd->path);
    d = opendir(path);
    while (!rc && d && (e = readdir(d))) {
        if (!telemetry_client_names(e->d_name, name, sizeof(name)))
            continue;
        rc = read_process(rd, name, f, sent);
        if (rc)
            snprintf(why, size, "%.64s does not say what its links carry: %s", name, strerror(-rc));
    }
    if (d)
        closedir(d);
    return rc;
}

int link_reader_read(const struct rundir *rd, const struct fabric *f, uint64_t *sent, char *why,
                     size_t size)
{
    int rc;

    for (unsigned d = 0; d < 2u * f->n_links; d++)
        sent[d] = UNREAD;
    rc = read_processes(rd, f, sent, why, size);
    for (unsigned d = 0; !rc && d < 2u * f->n_links; d++)
        if (sent[d] == UNREAD) {
            snprintf(why, size, "no process says what %s sends",
                     f->nodes[direction_sender(f, d)].name);
            rc = -ENOENT;
        }
    return rc;
}
