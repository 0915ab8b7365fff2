/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The report of a process on its slot of the NIC, in the slot's lock file
 * (port/<host>.<port>.<slot>.lock of the run directory): the pid when the process claims the slot,
 * and the counters of its queue pairs when it exits. The report stays until the next process claims
 * the slot or the fabric goes down, so a user can check that nothing was retransmitted.
 *
 * The file is opened by name: a program that ends may have closed the descriptor that holds the
 * lock, and reused its number.
 */
#include "host/hca/io/process_priv.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

struct fault_text {
    char buf[4096];
    size_t n;
};

static void line(void *ctx, const char *name, uint64_t v)
{
    struct fault_text *t = ctx;

    if (t->n < sizeof(t->buf))
        t->n += (size_t)snprintf(t->buf + t->n, sizeof(t->buf) - t->n, "%s %" PRIu64 "\n", name, v);
}

bool process_count(struct process_hca *p, bool last)
{
    bool any;

    pthread_mutex_lock(&p->count_lock);
    any = port_counters_add(&p->counters, rnic_counters(hca_rnic(p->hca)), clock_mono_ns(), last);
    pthread_mutex_unlock(&p->count_lock);
    return any;
}

void process_report(struct process_hca *p)
{
    struct fault_text t = {.n = 0};
    int fd = *p->lock_name ? rundir_file_quiet(p->rd, O_WRONLY | O_TRUNC, "%s", p->lock_name) : -1;

    if (fd < 0)
        return;
    line(&t, "pid", (uint64_t)getpid());
    if (p->hca)
        roce_counters_print(rnic_counters(hca_rnic(p->hca)), line, &t);
    if (t.n > sizeof(t.buf) - 1)
        t.n = sizeof(t.buf) - 1;
    /* The report is for people only: a full disk is no reason to fail. */
    if (write(fd, t.buf, t.n) < 0)
        t.n = 0;
    close(fd);
}
