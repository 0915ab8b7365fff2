/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/live/live.h"

#include "base/units.h"
#include "machine/shared.h"

#include <stdio.h>

struct live_ends live_ends(const struct fabric *f, unsigned d)
{
    const struct fab_link *l = &f->links[d / 2];

    if (d & 1)
        return (struct live_ends){l->b, l->b_port, l->a, l->a_port};
    return (struct live_ends){l->a, l->a_port, l->b, l->b_port};
}

/* ---- links ---- */

uint64_t live_count(const struct live_fabric *x, unsigned d, unsigned column)
{
    return x->now.dir[d].v[column];
}

/* A restarted process counts from 0: its count is then the difference. */
uint64_t live_delta(const struct live_fabric *x, unsigned d, unsigned column)
{
    uint64_t now = x->now.dir[d].v[column], before = x->before.dir[d].v[column];

    return now >= before ? now - before : now;
}

int64_t live_window_ps(const struct live_fabric *x, unsigned d)
{
    int64_t ps = x->now.dir[d].now_ps - x->before.dir[d].now_ps;

    return x->now.dir[d].known && ps > 0 ? ps : 0;
}

double live_GBps(const struct live_fabric *x, unsigned d)
{
    int64_t ps = live_window_ps(x, d);

    return ps ? (double)live_delta(x, d, PORT_link_bytes) * 1e3 / (double)ps : 0;
}

double live_utilisation(const struct live_fabric *x, unsigned d)
{
    int64_t ps = live_window_ps(x, d);
    double busy = (double)live_delta(x, d, PORT_busy_ps);

    if (!x->f->links[d / 2].rate_bps || x->f->nodes[live_ends(x->f, d).from].outside)
        return -1;
    /* > 1 because a frame's whole time counts when the frame starts */
    return !ps ? 0 : busy > (double)ps ? 1 : busy / (double)ps;
}

/* Counts drops as tables of results do: nodes count queue_full at the ingress port, but here it belongs
 * to the direction whose queue was full. */
const char *live_drop(const struct live_fabric *x, unsigned d, unsigned i, uint64_t *n)
{
    if (i == 0) {
        *n = live_count(x, d, PORT_lost);
        return "lost";
    }
    if (i == 1) {
        *n = live_count(x, d, PORT_down_drops);
        return "link_down";
    }
    if (i >= DROP_REASONS + 2)
        return NULL;
    *n = i - 2 == DROP_QUEUE_FULL ? live_count(x, d, PORT_queue_full)
                                  : live_count(x, d, PORT_drops + i - 2);
    return drop_name(i - 2);
}

uint64_t live_drops(const struct live_fabric *x, unsigned d)
{
    uint64_t n, sum = 0;

    for (unsigned i = 0; live_drop(x, d, i, &n); i++)
        sum += n;
    return sum;
}

/* ---- fidelity ---- */

static uint64_t lag_delta(const struct live_fabric *x, unsigned b)
{
    uint64_t now = x->now.lag[b], before = x->before.lag[b];

    return now >= before ? now - before : now;
}

uint64_t live_handoffs(const struct live_fabric *x)
{
    uint64_t n = 0;

    for (unsigned b = 0; b < LIVE_LAG; b++)
        n += lag_delta(x, b);
    return n;
}

int64_t live_lag_ns(const struct live_fabric *x, double q)
{
    uint64_t total = live_handoffs(x), seen = 0, want = (uint64_t)(q * (double)total);

    if (!total)
        return 0;
    want = want < total ? want : total - 1;
    for (unsigned b = 0; b < LIVE_LAG; b++) {
        seen += lag_delta(x, b);
        if (seen > want)
            return x->lag_top[b];
    }
    return 0;
}

double live_late_share(const struct live_fabric *x)
{
    uint64_t late = 0, all = live_handoffs(x);

    for (unsigned b = 0; b < LIVE_LAG; b++)
        late += x->lag_top[b] > LATENESS_BOUND_NS ? lag_delta(x, b) : 0;
    return all ? (double)late / (double)all : 0;
}

const char *live_kind(const struct live_fabric *x, unsigned kind)
{
    return kind < x->n_kinds && kind < sizeof(x->kind) / sizeof(x->kind[0]) ? x->kind[kind]
                                                                            : "unknown";
}
