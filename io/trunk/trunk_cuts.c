/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cut links of the whole fabric: switch processes reroute around links that have no end here, too. Each
 * machine sends the links that its processes call cut (link_cuts.c). A link between two other machines
 * counts as cut here if either says so or is gone. The trunk's own page states these links, and the
 * local switch processes read it there.
 */
#include "io/trunk/trunk_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REPEAT_NS 1000000000

static size_t bytes(const struct trunk *t)
{
    return (t->fab->n_links + 7u) / 8;
}

static unsigned machine_of(const struct trunk *t, uint16_t node)
{
    return t->fab->nodes[node].machine;
}

/* Whether local processes say that the link is cut; of two statements the later one counts. */
static bool cut_here(const struct trunk *t, unsigned link)
{
    uint64_t last = 0;

    for (unsigned i = 0; i < t->sh->n_sw; i++) {
        const struct switch_page *page = t->sh->sw[i].page;
        uint64_t s = atomic_load_explicit(&page->cut[link], memory_order_relaxed);

        if (page != t->sh->own && s >> 1 > last >> 1)
            last = s;
    }
    return last & 1;
}

void cuts_look(struct trunk *t, int64_t now_ns)
{
    uint8_t m[TRUNK_MAX];

    for (unsigned i = 0; i < t->fab->n_links; i++)
        bit_set(t->cuts, i, cut_here(t, i));
    if (!memcmp(t->cuts, t->cuts_sent, bytes(t)) && now_ns - t->cuts_ns < REPEAT_NS)
        return;
    t->cuts_ns = now_ns;
    memcpy(t->cuts_sent, t->cuts, bytes(t));
    for (unsigned i = 0; i < t->n; i++)
        if (i != t->me && peer_usable(&t->peer[i])) {
            memcpy(trunk_body(m), t->cuts, bytes(t));
            peers_send(t, i, TRUNK_CUTS, m, sizeof(struct trunk_header) + bytes(t));
        }
}

static bool says_cut(const struct trunk *t, unsigned machine, unsigned link)
{
    return !peer_usable(&t->peer[machine]) || bit_of(t->peer[machine].cuts, link);
}

void cuts_heard(struct trunk *t)
{
    struct switch_page *own = t->sh->own;
    bool changed = false;

    for (unsigned i = 0; i < t->fab->n_links; i++) {
        unsigned a = machine_of(t, t->fab->links[i].a), b = machine_of(t, t->fab->links[i].b);
        bool cut;

        if (a == t->me || b == t->me)
            continue;
        cut = says_cut(t, a, i) || says_cut(t, b, i);
        if (cut == (atomic_load(&own->cut[i]) & 1))
            continue;
        atomic_store(&own->cut[i], (uint64_t)clock_mono_ns() << 1 | cut);
        changed = true;
    }
    if (changed)
        atomic_fetch_add(&own->cuts, 1);
}

int cuts_create(struct trunk *t)
{
    t->cuts = calloc(1, bytes(t) + 1);
    t->cuts_sent = calloc(1, bytes(t) + 1);
    return t->cuts && t->cuts_sent ? 0 : -ENOMEM;
}
