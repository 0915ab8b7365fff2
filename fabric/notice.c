/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The time until a program notices a message that has arrived: `gpu` of the costs, and `step` of the path
 * by which it came. A sender takes the fastest protocol for the length: LL and LL128 have shorter steps,
 * but carry flags with the data and so sustain less than the links; a port's messages pass one after
 * another at their rate.
 */
#include "base/units.h"
#include "fabric/fabric.h"

bool fabric_port_is_nvlink(const struct fabric *f, const struct fab_node *host, unsigned port)
{
    fab_id peer = host->ports[port].link == FAB_NONE ? FAB_NONE : host->ports[port].peer_node;

    return host->domain != FAB_NONE && peer != FAB_NONE && f->nodes[peer].domain == host->domain;
}

/* Rate of all of the host's ports on the path of one of them. */
static uint64_t path_bps(const struct fabric *f, const struct fab_node *host, unsigned port)
{
    uint64_t all = 0;

    for (unsigned p = 0; p < host->n_ports; p++)
        if (host->ports[p].link != FAB_NONE &&
            fabric_port_is_nvlink(f, host, p) == fabric_port_is_nvlink(f, host, port))
            all += host->ports[p].rate_bps;
    return all;
}

/* The port's part of a rate or length for all ports on its path. */
static uint64_t part_of(const struct fab_notice *n, uint64_t whole)
{
    return n->path_bps ? (uint64_t)((unsigned __int128)whole * n->rate_bps / n->path_bps) : whole;
}

static struct fab_short short_part(const struct fab_notice *n, struct fab_short s)
{
    s.rate_bps = part_of(n, s.rate_bps);
    s.rate_bps = s.rate_bps < n->rate_bps ? s.rate_bps : n->rate_bps;
    return s;
}

struct fab_notice fabric_notice(const struct fabric *f, const struct fab_node *host, unsigned port)
{
    const struct fab_path_costs *c =
        fabric_port_is_nvlink(f, host, port) ? &f->costs.nvlink : &f->costs.network;
    struct fab_notice n = {.gpu_ps = f->costs.gpu_ps,
                           .step_ps = c->step_ps,
                           .rate_bps = host->ports[port].rate_bps,
                           .path_bps = path_bps(f, host, port)};

    n.ll = short_part(&n, c->ll);
    n.ll128 = short_part(&n, c->ll128);
    return n;
}

static int64_t bytes_ps(uint64_t len, uint64_t rate_bps)
{
    return (int64_t)((unsigned __int128)len * 8 * PS_PER_S / rate_bps);
}

/* Returns s if it is faster than *best_ps, and sets *best_ps to its step plus the time by which it is
 * slower than the port; otherwise returns best. */
static const struct fab_short *faster(const struct fab_notice *n, const struct fab_short *s,
                                      uint64_t len, const struct fab_short *best, int64_t *best_ps)
{
    int64_t ps;

    if (!s->rate_bps || !n->rate_bps)
        return best;
    ps = s->step_ps + bytes_ps(len, s->rate_bps) - bytes_ps(len, n->rate_bps);
    if (ps >= *best_ps)
        return best;
    *best_ps = ps;
    return s;
}

/* The short protocol that is fastest for a message; NULL: none. */
static const struct fab_short *short_fastest(const struct fab_notice *n, uint64_t len)
{
    int64_t ps = n->step_ps;

    return faster(n, &n->ll128, len, faster(n, &n->ll, len, NULL, &ps), &ps);
}

int64_t fab_noticed_ps(const struct fab_notice *n, uint64_t len, bool is_long, int64_t now_ps,
                       int64_t *free_ps)
{
    const struct fab_short *s = is_long ? NULL : short_fastest(n, len);
    int64_t start;

    if (!s)
        return now_ps + n->gpu_ps + n->step_ps;
    start = now_ps - bytes_ps(len, n->rate_bps);
    *free_ps = (start > *free_ps ? start : *free_ps) + bytes_ps(len, s->rate_bps);
    return *free_ps + s->step_ps + n->gpu_ps;
}

bool fab_notice_is_long(const struct fab_notice *n, uint64_t len)
{
    return (n->ll.rate_bps || n->ll128.rate_bps) && !short_fastest(n, part_of(n, len));
}

int64_t fabric_longest_notice_ps(const struct fabric *f)
{
    int64_t a = f->costs.nvlink.step_ps, b = f->costs.network.step_ps;

    return f->costs.gpu_ps + (a > b ? a : b);
}
