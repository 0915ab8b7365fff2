/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/report/drawing.h"

#include <stdlib.h>
#include <string.h>

#define CHARACTER   7.5
#define GAP         14.0
#define ROW         96.0 /* or so much of the width, which keeps lines apart: */
#define ROW_SHARE   0.1
#define MARGIN      24.0
#define ROWS        8u
#define ROW_HOSTS   6u /* rows above it: tiers of switches; below it: NVSwitches */
#define ROW_NVLINKS 7u

/* ---- boxes ---- */

/* Row of a node: higher tiers come first. */
static uint8_t row_of(const struct fab_node *n)
{
    if (n->kind == FAB_HOST)
        return ROW_HOSTS;
    if (n->role == FAB_ROLE_NVSWITCH && n->domain != FAB_NONE)
        return ROW_NVLINKS;
    return (uint8_t)(ROW_HOSTS - (n->tier < 1 ? 1 : n->tier > ROW_HOSTS ? ROW_HOSTS : n->tier));
}

/* Of each GPU node: the first one that is attached to the same switches by as many links, itself
 * where there is none or nodes are few. */
struct alike {
    fab_id first[FAB_MAX_NODES];
    uint64_t wires[FAB_MAX_NODES]; /* a sum over links, in which order does not count */
    unsigned n;
};

static uint64_t mixed(uint64_t x)
{
    x = (x + 1) * 0x9e3779b97f4a7c15ULL;
    x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9ULL;
    return x ^ x >> 29;
}

static void find_alike(const struct fabric *f, struct alike *a)
{
    for (unsigned i = 0; i < f->n_nodes; i++)
        if (f->nodes[i].domain != FAB_NONE && f->nodes[i].domain >= a->n)
            a->n = f->nodes[i].domain + 1u;
    for (unsigned i = 0; i < f->n_links; i++) {
        const struct fab_link *l = &f->links[i];
        fab_id x = f->nodes[l->a].domain, z = f->nodes[l->b].domain;

        if (x != FAB_NONE && z != x)
            a->wires[x] += mixed(l->b);
        if (z != FAB_NONE && z != x)
            a->wires[z] += mixed(l->a);
    }
    for (unsigned d = 0; d < a->n; d++) {
        unsigned first = d;

        for (unsigned k = 0; a->n > DRAWING_DOMAINS && k < d && first == d; k++)
            if (a->wires[k] == a->wires[d])
                first = k;
        a->first[d] = (fab_id)first;
    }
}

/* Nodes with equal numbers share a box: those of GPU nodes that are alike, or hosts of a leaf.
 * FAB_NONE: a box of its own. */
static unsigned fold(const struct fabric *f, const struct alike *a, const struct fab_node *n)
{
    if (f->n_hosts <= DRAWING_HOSTS)
        return FAB_NONE;
    if (n->domain != FAB_NONE)
        return FAB_MAX_NODES + a->first[n->domain];
    return n->kind == FAB_HOST && n->n_ports && n->ports[0].link != FAB_NONE ? n->ports[0].peer_node
                                                                             : FAB_NONE;
}

static void count(struct drawing_box *b, const struct fabric *f, const struct fab_node *n)
{
    /* nodes of a domain follow each other */
    if (n->domain != FAB_NONE && (n == f->nodes || n[-1].domain != n->domain) &&
        n->kind == FAB_HOST)
        b->domains++;
    if (n->kind == FAB_HOST)
        b->hosts++;
    else if (n->role == FAB_ROLE_NVSWITCH)
        b->nvswitches++;
    else
        b->others++;
}

static int make_boxes(const struct fabric *f, struct drawing *d)
{
    fab_id *of = malloc((FAB_MAX_NODES + FAB_NONE + 1) * sizeof(*of));
    struct alike *a = calloc(1, sizeof(*a));

    if (!of || !a) {
        free(of);
        free(a);
        return -1;
    }
    find_alike(f, a);
    memset(of, 0xff, (FAB_MAX_NODES + FAB_NONE + 1) * sizeof(*of));
    for (unsigned i = 0; i < f->n_nodes; i++) {
        unsigned key = fold(f, a, &f->nodes[i]);
        unsigned b = key == FAB_NONE || of[key] == FAB_NONE ? d->n_boxes++ : of[key];

        if (key != FAB_NONE)
            of[key] = (fab_id)b;
        if (!d->box[b].hosts && !d->box[b].nvswitches && !d->box[b].others)
            d->box[b].node = (fab_id)i;
        if (f->nodes[i].kind == FAB_HOST || !d->box[b].row)
            d->box[b].row = row_of(&f->nodes[i]);
        count(&d->box[b], f, &f->nodes[i]);
        d->box_of[i] = (fab_id)b;
    }
    free(of);
    free(a);
    return 0;
}

static void label(const struct fabric *f, struct drawing_box *b)
{
    const char *first = f->nodes[b->node].name;
    size_t n = sizeof(b->label);

    if (b->hosts + b->nvswitches + b->others == 1)
        snprintf(b->label, n, "%s", first);
    else if (b->domains > 1)
        snprintf(b->label, n, "%s ...: %u nodes, %u GPUs", first, b->domains, b->hosts);
    else
        snprintf(b->label, n, "%s +%u", first, b->hosts - 1u);
    b->width = CHARACTER * (double)strlen(b->label) + 12;
    if (b->width < 44)
        b->width = 44;
}

/* Boxes of a row are spread evenly over the width of the widest row. */
static void place(const struct fabric *f, struct drawing *d)
{
    double need[ROWS] = {0};
    unsigned in_row[ROWS] = {0}, at[ROWS] = {0};
    double y = MARGIN, step;

    for (unsigned b = 0; b < d->n_boxes; b++) {
        label(f, &d->box[b]);
        in_row[d->box[b].row]++;
        if (d->box[b].width + GAP > need[d->box[b].row])
            need[d->box[b].row] = d->box[b].width + GAP;
    }
    for (unsigned r = 0; r < ROWS; r++)
        if (need[r] * in_row[r] + 2 * MARGIN > d->width)
            d->width = need[r] * in_row[r] + 2 * MARGIN;
    for (unsigned b = 0; b < d->n_boxes; b++) {
        unsigned r = d->box[b].row;

        d->box[b].x =
            MARGIN + (d->width - 2 * MARGIN) * (2 * at[r]++ + 1) / (2.0 * (double)in_row[r]);
    }
    step = f->n_hosts > DRAWING_HOSTS ? 1.5 * ROW : ROW; /* lines of many links are wide */
    step = ROW_SHARE * d->width > step ? ROW_SHARE * d->width : step;
    for (unsigned r = 0; r < ROWS; r++) {
        if (!in_row[r])
            continue;
        for (unsigned b = 0; b < d->n_boxes; b++)
            if (d->box[b].row == r)
                d->box[b].y = y;
        y += step;
    }
    d->height = y - step + DRAWING_BOX_HEIGHT + MARGIN;
}

/* ---- lines ---- */

static int by_ends(const void *p, const void *q)
{
    const struct drawing_line *a = p, *b = q;

    if (a->a != b->a)
        return a->a < b->a ? -1 : 1;
    if (a->b != b->b)
        return a->b < b->b ? -1 : 1;
    return a->link < b->link ? -1 : 1;
}

static void make_lines(const struct fabric *f, struct drawing *d)
{
    unsigned n = 0;

    for (unsigned l = 0; l < f->n_links; l++) {
        fab_id a = d->box_of[f->links[l].a], b = d->box_of[f->links[l].b];

        if (a != b)
            d->line[n++] = (struct drawing_line){.a = a < b ? a : b,
                                                 .b = a < b ? b : a,
                                                 .link = (fab_id)l,
                                                 .links = 1,
                                                 .rate_bps = f->links[l].rate_bps};
    }
    qsort(d->line, n, sizeof(*d->line), by_ends);
    for (unsigned i = 0; i < n; i++) {
        struct drawing_line *last = d->n_lines ? &d->line[d->n_lines - 1] : NULL;

        if (last && last->a == d->line[i].a && last->b == d->line[i].b) {
            last->links++;
            last->rate_bps += d->line[i].rate_bps;
        } else {
            d->line[d->n_lines++] = d->line[i];
        }
    }
}

double drawing_arc(const struct drawing_box *a, const struct drawing_box *b)
{
    double apart = a->x < b->x ? b->x - a->x : a->x - b->x;

    return 16 + 0.3 * apart;
}

/* Room for the arcs below the last row. */
static void add_room(struct drawing *d)
{
    double most = 0;

    for (unsigned i = 0; i < d->n_lines; i++) {
        const struct drawing_box *a = &d->box[d->line[i].a], *b = &d->box[d->line[i].b];
        double low = a->row == b->row ? a->y + DRAWING_BOX_HEIGHT + drawing_arc(a, b) / 2 : 0;

        if (low > most)
            most = low;
    }
    if (most + MARGIN > d->height)
        d->height = most + MARGIN;
}

struct drawing *drawing_new(const struct fabric *f)
{
    struct drawing *d = calloc(1, sizeof(*d));

    if (!d)
        return NULL;
    d->box = calloc(f->n_nodes + 1u, sizeof(*d->box));
    d->line = calloc(f->n_links + 1u, sizeof(*d->line));
    d->box_of = calloc(f->n_nodes + 1u, sizeof(*d->box_of));
    if (!d->box || !d->line || !d->box_of || make_boxes(f, d)) {
        drawing_free(d);
        return NULL;
    }
    place(f, d);
    make_lines(f, d);
    add_room(d);
    return d;
}

void drawing_free(struct drawing *d)
{
    if (!d)
        return;
    free(d->box);
    free(d->line);
    free(d->box_of);
    free(d);
}
