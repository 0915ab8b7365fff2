/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The time until a program notices a message that has arrived: `gpu` of the costs, and the step of
 * the path that it came by. A sender takes the protocol that is fastest for the length: LL and LL128
 * have shorter steps, but carry flags with the data, so they sustain less than the links.
 */
#include "base/units.h"
#include "fabric/fabric.h"

bool fabric_port_is_nvlink(const struct fabric *f, const struct fab_node *host, unsigned port)
{
    uint16_t peer = host->ports[port].link == FAB_NONE ? FAB_NONE : host->ports[port].peer_node;

    return host->domain != FAB_NONE && peer != FAB_NONE && f->nodes[peer].domain == host->domain;
}

/* The port's part of the rate that a protocol sustains over all of the host's ports on its path. */
static struct fab_short part_of(const struct fabric *f, const struct fab_node *host, unsigned port,
                                struct fab_short s)
{
    uint64_t own = host->ports[port].rate_bps, all = 0;

    for (unsigned p = 0; p < host->n_ports; p++)
        if (host->ports[p].link != FAB_NONE &&
            fabric_port_is_nvlink(f, host, p) == fabric_port_is_nvlink(f, host, port))
            all += host->ports[p].rate_bps;
    if (s.rate_bps && all)
        s.rate_bps = (uint64_t)((unsigned __int128)s.rate_bps * own / all);
    s.rate_bps = s.rate_bps < own ? s.rate_bps : own;
    return s;
}

struct fab_notice fabric_notice(const struct fabric *f, const struct fab_node *host, unsigned port)
{
    const struct fab_path_costs *c =
        fabric_port_is_nvlink(f, host, port) ? &f->costs.nvlink : &f->costs.network;

    return (struct fab_notice){.gpu_ps = f->costs.gpu_ps,
                               .step_ps = c->step_ps,
                               .ll = part_of(f, host, port, c->ll),
                               .ll128 = part_of(f, host, port, c->ll128),
                               .rate_bps = host->ports[port].rate_bps};
}

static int64_t bytes_ps(uint64_t len, uint64_t rate_bps)
{
    return (int64_t)((unsigned __int128)len * 8 * PS_PER_S / rate_bps);
}

/* step, or that of a short protocol with the time by which it is slower than the port. */
static int64_t faster(const struct fab_notice *n, const struct fab_short *s, uint64_t len,
                      int64_t step)
{
    int64_t ps;

    if (!s->rate_bps || !n->rate_bps)
        return step;
    ps = s->step_ps + bytes_ps(len, s->rate_bps) - bytes_ps(len, n->rate_bps);
    ps = ps > 0 ? ps : 0;
    return ps < step ? ps : step;
}

int64_t fab_notice_ps(const struct fab_notice *n, uint64_t len)
{
    return n->gpu_ps + faster(n, &n->ll128, len, faster(n, &n->ll, len, n->step_ps));
}

int64_t fabric_longest_notice_ps(const struct fabric *f)
{
    int64_t a = f->costs.nvlink.step_ps, b = f->costs.network.step_ps;

    return f->costs.gpu_ps + (a > b ? a : b);
}
