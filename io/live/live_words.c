/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/live/live.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void live_names(const struct fabric *f, unsigned d, char *from, char *to, size_t size)
{
    const struct live_ends e = live_ends(f, d);
    char pair[2 * FAB_NAME + 2];

    snprintf(pair, sizeof(pair), "%s-%s", f->nodes[e.from].name, f->nodes[e.to].name);
    if (fabric_link_by_name(f, pair) >= 0) {
        snprintf(from, size, "%s", f->nodes[e.from].name);
        snprintf(to, size, "%s", f->nodes[e.to].name);
        return;
    }
    snprintf(from, size, "%s:%u", f->nodes[e.from].name, (unsigned)e.from_port);
    snprintf(to, size, "%s:%u", f->nodes[e.to].name, (unsigned)e.to_port);
}

const char *live_size(double n, char *buf, size_t size)
{
    static const char units[] = " kMGTPE";
    unsigned u = 0;

    for (; n >= 999.5 && u < sizeof(units) - 2; u++)
        n /= 1000;
    if (!u)
        snprintf(buf, size, "%.0f", n);
    else
        snprintf(buf, size, n < 9.95 ? "%.1f%c" : "%.0f%c", n, units[u]);
    return buf;
}

bool live_drops_text(const struct live_fabric *x, unsigned d, char *buf, size_t size)
{
    size_t len = 0;
    const char *name;
    uint64_t n;

    *buf = 0;
    for (unsigned i = 0; (name = live_drop(x, d, i, &n)) && len < size; i++)
        if (n)
            len += (size_t)snprintf(buf + len, size - len, "%s%" PRIu64 " %s", len ? ", " : "", n,
                                    name);
    return len < size;
}

void live_state_text(const struct live_fabric *x, unsigned d, char *buf, size_t size)
{
    const char *faults = x->faults[d / 2];
    const char *state = live_count(x, d, PORT_down)     ? "down"
                        : live_count(x, d, PORT_paused) ? "paused"
                        : *faults                       ? ""
                                                        : "up";

    snprintf(buf, size, "%s%s%s", state, *state && *faults ? " " : "", faults);
}

void live_headline(const struct live_fabric *x, char *buf, size_t size)
{
    int64_t since = x->now.now_ps - x->before.now_ps;
    double p99_us = (double)live_lag_ns(x, 0.99) / 1e3;
    char lag[80] = "no hand-offs";
    unsigned silent = 0;

    for (unsigned i = 0; i < x->n_procs; i++)
        silent += x->proc[i].state != LIVE_READY;
    if (live_handoffs(x))
        snprintf(lag, sizeof(lag), "hand-offs p99 %.1f us late, %.3f us of fabric time", p99_us,
                 p99_us / (x->dilation ? x->dilation : 1));
    snprintf(buf, size, "%s: dilation %u, fabric time %.3f s, the last %.3f ms of it; %s",
             x->f->name, x->dilation, (double)x->now.now_ps * 1e-12, (double)since * 1e-9, lag);
    if (silent && strlen(buf) < size)
        snprintf(buf + strlen(buf), size - strlen(buf), "; %u of %u processes do not answer",
                 silent, x->n_procs);
}
