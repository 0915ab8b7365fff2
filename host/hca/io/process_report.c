/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a process did with its slot of the NIC, written into the slot's lock file
 * (port/<host>.<port>.<slot>.lock of the run directory): the pid when it takes the slot, and the
 * counters of its queue pairs when it lets go. They stay there until the next process comes or the
 * fabric goes down, so whoever ran it can see that nothing was sent twice.
 *
 * By the file's name and not by the descriptor that holds its lock: a program that ends may have
 * closed that, and have another file under its number.
 */
#include "host/hca/io/process_priv.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

struct text {
    char buf[4096];
    size_t n;
};

static void line(void *ctx, const char *name, uint64_t v)
{
    struct text *t = ctx;

    if (t->n < sizeof(t->buf))
        t->n += (size_t)snprintf(t->buf + t->n, sizeof(t->buf) - t->n, "%s %" PRIu64 "\n", name, v);
}

bool rim_count(struct rim_hca *r, bool last)
{
    bool any;

    pthread_mutex_lock(&r->count_lock);
    any = port_counters_add(&r->counters, rnic_counters(hca_rnic(r->hca)), clock_mono_ns(), last);
    pthread_mutex_unlock(&r->count_lock);
    return any;
}

void rim_report(struct rim_hca *r)
{
    struct text t = {.n = 0};
    int fd = *r->lock_path ? open(r->lock_path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW) : -1;

    if (fd < 0)
        return;
    line(&t, "pid", (uint64_t)getpid());
    if (r->hca)
        roce_counters_print(rnic_counters(hca_rnic(r->hca)), line, &t);
    if (t.n > sizeof(t.buf) - 1)
        t.n = sizeof(t.buf) - 1;
    /* Only for people: a full disk is no reason to fail. */
    if (write(fd, t.buf, t.n) < 0)
        t.n = 0;
    close(fd);
}
