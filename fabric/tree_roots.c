/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the roots (tree.c) by comparing classes of switches that reach the same ends: there are many pairs
 * of switches, but few pairs of classes.
 */
#include "fabric/tree_roots.h"

#include "fabric/routing/reach.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Reducing switches of a network that reach the same ends. */
struct class
{
    const uint64_t *ends;
    uint64_t *hosts; /* the attached hosts */
    uint64_t sum;    /* sum of hashes of these hosts */
    uint16_t tier;   /* highest tier of its switches */
    bool beaten;     /* some class has all of its hosts and more */
};

struct election {
    const struct fabric *f;
    const struct reach *r;
    struct class *class; /* [n_switches] */
    fab_id *of;          /* [n_nodes] class of a switch; FAB_NONE: it does not reduce */
    unsigned n, net;
};

static void sort_into_classes(struct election *e)
{
    const struct fabric *f = e->f;

    e->n = 0;
    for (unsigned s = f->networks[e->net]; s < f->networks[e->net + 1u]; s++) {
        fab_id u = f->by_network[s];
        const uint64_t *ends = reach_down(f, e->r, u);
        unsigned k = e->n; /* most have the ends of the last class */

        e->of[u] = FAB_NONE;
        if (!f->nodes[u].reduce.on)
            continue;
        while (k > 0 && memcmp(e->class[k - 1].ends, ends, e->r->words[e->net] * sizeof(*ends)))
            k--;
        if (!k) {
            e->class[e->n++] = (struct class){.ends = ends};
            k = e->n;
        }
        e->of[u] = (fab_id)(k - 1);
        if (f->nodes[u].tier > e->class[k - 1].tier)
            e->class[k - 1].tier = f->nodes[u].tier;
    }
}

static void add_to_class(struct class *c, unsigned bit, fab_id host)
{
    uint64_t hash = (host + 1u) * 0x9e3779b97f4a7c15ULL;

    if (c->hosts[bit / 64] >> (bit % 64) & 1)
        return;
    c->hosts[bit / 64] |= 1ull << (bit % 64);
    hash = (hash ^ hash >> 31) * 0xbf58476d1ce4e5b9ULL;
    c->sum += (hash ^ hash >> 29) | 1;
}

/* Sets the bits of each class's hosts; a host's number is that of its first entry in r->attached. Returns
 * the words of a set; 0: no memory. */
static unsigned find_hosts(struct election *e)
{
    const struct reach *r = e->r;
    size_t from = r->first[e->net], to = r->first[e->net + 1u];
    unsigned words = (unsigned)((to - from) / 64 + 1);
    uint64_t *bits = calloc((size_t)words * e->n + 1, sizeof(*bits));

    for (unsigned k = 0; bits && k < e->n; k++) {
        size_t first = from;

        e->class[k].hosts = bits + (size_t)k * words;
        for (size_t i = from; i < to; i++) {
            first = i > from && r->attached[i].host == r->attached[i - 1].host ? first : i;
            if (reach_has(e->class[k].ends, r->end[r->attached[i].end]))
                add_to_class(&e->class[k], (unsigned)(first - from), r -> attached[i].host);
        }
    }
    return bits ? words : 0;
}

/* Compares a with z: marks a as beaten if z has all of its hosts and more; if z has the same hosts, raises
 * a's tier to z's. */
static void tree_roots_compare(struct class *a, const struct class *z, unsigned words)
{
    bool more = false;

    for (unsigned w = 0; w < words; w++) {
        if (a->hosts[w] & ~z->hosts[w])
            return;
        more |= z->hosts[w] != a->hosts[w];
    }
    a->beaten |= more;
    if (!more && z->tier > a->tier)
        a->tier = z->tier;
}

/* Writes to root[] a number of its hosts for each root of a network, 0 for other switches. */
static int elect(struct election *e, uint64_t *root)
{
    const struct fabric *f = e->f;
    unsigned words;

    sort_into_classes(e);
    words = e->n ? find_hosts(e) : 0;
    if (e->n && !words)
        return -ENOMEM;
    for (unsigned a = 0; a < e->n; a++) {
        e->class[a].beaten = !e->class[a].sum;
        for (unsigned z = 0; z < e->n && !e->class[a].beaten; z++)
            if (z != a)
                tree_roots_compare(&e->class[a], &e -> class[z], words);
    }
    for (unsigned s = f->networks[e->net]; s < f->networks[e->net + 1u]; s++) {
        fab_id u = f->by_network[s];
        const struct class *c = e->of[u] == FAB_NONE ? NULL : &e->class[e->of[u]];

        root[u] = c && !c->beaten && f->nodes[u].tier >= c->tier ? c->sum ? c->sum : 1 : 0;
    }
    if (e->n)
        free(e->class[0].hosts);
    return 0;
}

uint64_t *tree_roots(struct build *b)
{
    struct election e = {.f = b->f,
                         .r = b->reach,
                         .class = calloc(b->f->n_switches + 1u, sizeof(*e.class)),
                         .of = calloc(b->f->n_nodes + 1u, sizeof(*e.of))};
    uint64_t *root = calloc(b->f->n_nodes + 1u, sizeof(*root));

    b->no_memory |= !e.class || !e.of || !root;
    for (e.net = 0; e.net < b->f->n_networks && !b->no_memory; e.net++)
        b->no_memory |= elect(&e, root) != 0;
    free(e.class);
    free(e.of);
    return root;
}
