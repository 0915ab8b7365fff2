/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/link_terms.h"

#include "base/units.h"

#include <errno.h>

struct link_terms link_terms_of_conf(const struct fabric *f, unsigned link)
{
    return (struct link_terms){f->links[link].rate_bps, f->links[link].latency_ps};
}

static const struct fab_port *end_of(const struct fabric *f, unsigned link, unsigned end)
{
    const struct fab_link *l = &f->links[link];

    return end ? &f->nodes[l->b].ports[l->b_port] : &f->nodes[l->a].ports[l->a_port];
}

static bool has_host(const struct fabric *f, unsigned link)
{
    const struct fab_link *l = &f->links[link];

    return f->nodes[l->a].kind == FAB_HOST || f->nodes[l->b].kind == FAB_HOST;
}

bool link_terms_fixed(const struct fabric *f, unsigned link)
{
    const struct fab_link *l = &f->links[link];

    return f->nodes[l->a].outside || f->nodes[l->b].outside || end_of(f, link, 0)->external[0] ||
           end_of(f, link, 1)->external[0];
}

/* The longest latency with which a link at this rate holds no more bytes than at its conf's terms, for which
 * PFC has headroom. A port's latency includes its switch's. */
static int64_t longest(const struct fabric *f, unsigned link, uint64_t rate_bps)
{
    const struct fab_link *l = &f->links[link];
    int64_t least = PS_PER_S;

    for (unsigned end = 0; end < 2; end++) {
        int64_t port_ps = end_of(f, link, end)->latency_ps;
        unsigned __int128 ps = (unsigned __int128)port_ps * l->rate_bps / rate_bps;
        int64_t most = ps > PS_PER_S ? PS_PER_S : (int64_t)ps - (port_ps - l->latency_ps);

        least = most < least ? most : least;
    }
    return least;
}

/* Why the link cannot be faster than in the conf; NULL: it can. */
static const char *rate_bound(const struct fabric *f, unsigned link)
{
    return f->links[link].pfc  ? "or PFC's headroom is too small"
           : has_host(f, link) ? "by which programs pace themselves"
                               : NULL;
}

int link_terms_check(const struct fabric *f, unsigned link, const struct link_terms *t, char *why,
                     size_t size)
{
    const struct fab_link *l = &f->links[link];
    char rate[32], latency[32], most[32];

    print_rate(t->rate_bps, rate, sizeof(rate));
    print_time(t->latency_ps, latency, sizeof(latency));
    print_rate(l->rate_bps, most, sizeof(most));
    if (link_terms_fixed(f, link))
        snprintf(
            why, size,
            "rate, latency: found a link to the outside, expected one whose ends are emulated");
    else if (t->rate_bps < LINK_TERMS_MIN_BPS || t->rate_bps > LINK_TERMS_MAX_BPS)
        snprintf(why, size, "rate: found %s, expected 1Mb/s to 100Tb/s%s", rate,
                 t->rate_bps ? "" : ", or the word down");
    else if (t->latency_ps < 0 || t->latency_ps > PS_PER_S)
        snprintf(why, size, "latency: found %s, expected 0ns to 1s", latency);
    else if (t->rate_bps > l->rate_bps && rate_bound(f, link))
        snprintf(why, size, "rate: found %s, expected at most the conf's %s, %s", rate, most,
                 rate_bound(f, link));
    else if (l->pfc && t->latency_ps > longest(f, link, t->rate_bps)) {
        print_time(longest(f, link, t->rate_bps), most, sizeof(most));
        snprintf(why, size,
                 "latency: found %s, expected at most %s at %s, or PFC's headroom is too small",
                 latency, most, rate);
    } else {
        return 0;
    }
    return -EINVAL;
}

void link_terms_print(const struct fabric *f, unsigned link, const struct link_terms *t, char *buf,
                      size_t size)
{
    const struct fab_link *l = &f->links[link];
    char text[32];
    size_t len = 0;

    *buf = '\0';
    if (t->rate_bps != l->rate_bps) {
        print_rate(t->rate_bps, text, sizeof(text));
        len = (size_t)snprintf(buf, size, "rate=%s", text);
    }
    if (t->latency_ps != l->latency_ps && len < size) {
        print_time(t->latency_ps, text, sizeof(text));
        snprintf(buf + len, size - len, "%slatency=%s", len ? " " : "", text);
    }
}
