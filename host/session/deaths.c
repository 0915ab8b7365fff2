/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds ended processes of other ranks, ended trib-switches and lost machines, for which ranks
 * would wait in vain. Retries find them too, but in fabric time (minutes at a dilation of 100),
 * while /proc and the run directory show them at once. Of processes it sees only those of this
 * machine and PID namespace.
 */
#include "base/assert.h"
#include "host/session/comm_priv.h"
#include "machine/shared.h"

#include <stdio.h>
#include <string.h>

#define LOOK_NS  200000000LL
#define GRACE_NS 500000000LL /* time to find the reason of a failure */
/* From the end of a rank's process to a failure, in wall and in fabric time: its last frames may
 * still arrive. */
#define GONE_NS 1000000000LL
#define GONE_PS 50000000LL

static bool is_gone(const struct trib_comm *c, uint32_t r)
{
    return c->process[r].space && comm_counts_on(c->comm, r) && liveness_ended(&c->process[r]);
}

/* Aborts if the process of a rank that this one counts on has ended without notice. The rank that
 * was found first is the reason: others may end because of it. */
static void look_for_ranks(struct trib_comm *c, int64_t now, uint32_t dilation)
{
    char why[COMM_TEXT];
    uint32_t r = c->gone_ns && is_gone(c, c->gone) ? c->gone : 0;

    T_ASSERT(r < c->cfg.nranks, "a process has ended that is no rank's");
    while (r < c->cfg.nranks && !is_gone(c, r))
        r++;
    if (r == c->cfg.nranks) {
        c->gone_ns = 0;
    } else if (!c->gone_ns || r != c->gone) {
        c->gone_ns = now;
        c->gone = r;
    } else if (now - c->gone_ns > GONE_NS + GONE_PS / 1000 * dilation) {
        snprintf(why, sizeof(why), "rank %u (%s): its process has ended", r,
                 c->session->fab->nodes[c->session->fab->hosts[c->host[r]]].name);
        comm_abort(c->comm, why);
    }
}

/* Notes the death of a trib-switch or machine that the ranks need. */
static void look_for_switches(struct trib_comm *c)
{
    bool needed = false;

    while (c->watch && !*c->lost &&
           process_monitor_died(c->watch, c->lost, sizeof(c->lost), &needed))
        if (!needed)
            *c->lost = 0;
}

void deaths_look(struct trib_comm *c, int64_t now, uint32_t dilation)
{
    bool failed = comm_state(c->comm) == COMM_FAILED;

    if (failed && !c->failed_ns)
        c->failed_ns = now;
    if (c->settled || now - c->looked_ns < LOOK_NS)
        return;
    c->looked_ns = now;
    look_for_switches(c);
    if (!failed && *c->lost)
        comm_abort(c->comm, c->lost);
    else if (comm_state(c->comm) == COMM_READY)
        look_for_ranks(c, now, dilation);
    c->settled = failed && (*c->lost || (now - c->failed_ns > GRACE_NS &&
                                         !(c->watch && process_monitor_waits(c->watch))));
}

void deaths_error(struct trib_comm *c, char *text, size_t size)
{
    const char *why = comm_error(c->comm);

    if (!*c->lost || strstr(why, c->lost))
        snprintf(text, size, "%s", why);
    else
        snprintf(text, size, "%s; noticed first: %s", c->lost, why);
}
