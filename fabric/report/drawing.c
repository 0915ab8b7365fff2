/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/report/drawing.h"
#include "fabric/report/fold.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHARACTER   7.5
#define GAP         14.0
#define COUNT       96.0 /* space for the number of a line's links */
#define ROW         96.0 /* least height of a row; or this part of the width: */
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

static void drawing_box_count(struct drawing_box *b, const struct fabric *f,
                              const struct fab_node *n)
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

struct keyed {
    uint64_t key;
    fab_id node;
};

static int by_key(const void *p, const void *q)
{
    const struct keyed *a = p, *b = q;

    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

/* For each node the first one of its box. [n_nodes] */
static int find_first(const struct fabric *f, enum fold fold, fab_id *first)
{
    uint64_t *key = calloc(f->n_nodes + 1u, sizeof(*key));
    struct keyed *k = calloc(f->n_nodes + 1u, sizeof(*k));
    int rc = key && k ? fold_keys(f, fold, key) : -ENOMEM;

    for (unsigned i = 0; !rc && i < f->n_nodes; i++)
        k[i] = (struct keyed){key[i], (fab_id)i};
    if (!rc)
        qsort(k, f->n_nodes, sizeof(*k), by_key);
    for (unsigned i = 0; !rc && i < f->n_nodes; i++)
        first[k[i].node] =
            i && k[i].key && k[i].key == k[i - 1].key ? first[k[i - 1].node] : k[i].node;
    free(key);
    free(k);
    return rc;
}

static int make_boxes(const struct fabric *f, enum fold fold, struct drawing *d)
{
    fab_id *first = calloc(f->n_nodes + 1u, sizeof(*first));
    int rc = first ? find_first(f, fold, first) : -ENOMEM;

    d->n_boxes = d->n_lines = 0;
    d->width = d->height = 0;
    memset(d->box, 0, f->n_nodes * sizeof(*d->box));
    for (unsigned i = 0; i < f->n_nodes && !rc; i++) {
        unsigned b = first[i] == i ? d->n_boxes++ : d->box_of[first[i]];

        if (first[i] == i)
            d->box[b].node = (fab_id)i;
        if (f->nodes[i].kind == FAB_HOST || !d->box[b].row)
            d->box[b].row = row_of(&f->nodes[i]);
        drawing_box_count(&d->box[b], f, &f->nodes[i]);
        d->box_of[i] = (fab_id)b;
    }
    free(first);
    return rc;
}

static const char *plural(const struct fab_node *n)
{
    static const char *const names[] = {"hosts", "leaves",     "spines",
                                        "cores", "NVSwitches", "switches"};

    return names[n->role];
}

static void label(const struct fabric *f, enum fold fold, struct drawing_box *b)
{
    const char *first = f->nodes[b->node].name;
    size_t n = sizeof(b->label);
    unsigned nodes = b->hosts + b->nvswitches + b->others;
    double least = fold > FOLD_NONE && b->hosts > 1 ? COUNT : 44;

    if (nodes == 1)
        snprintf(b->label, n, "%s", first);
    else if (b->domains > 1)
        snprintf(b->label, n, "%s ...: %u nodes, %u GPUs", first, b->domains, b->hosts);
    else if (b->hosts && (fold <= FOLD_TWINS || b->domains))
        snprintf(b->label, n, "%s +%u", first, b->hosts - 1u);
    else
        snprintf(b->label, n, "%s ...: %u %s", first, nodes, plural(&f->nodes[b->node]));
    b->width = CHARACTER * (double)strlen(b->label) + 12;
    if (b->width < least)
        b->width = least;
}

/* Spreads the boxes of a row evenly over the width of the widest row. */
static void drawing_place(const struct fabric *f, enum fold fold, struct drawing *d)
{
    double need[ROWS] = {0};
    unsigned in_row[ROWS] = {0}, at[ROWS] = {0};
    double y = MARGIN, step;

    for (unsigned b = 0; b < d->n_boxes; b++) {
        label(f, fold, &d->box[b]);
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
    step = fold > FOLD_NONE ? 1.5 * ROW : ROW; /* lines of many links need space */
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

/* Adds space for the arcs below the last row. */
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

/* The highest rates, each of which is drawn in its own way. */
static void find_rates(const struct fabric *f, struct drawing *d)
{
    uint64_t last = UINT64_MAX;

    for (unsigned k = 0; k + 1 < DRAWING_RATES; k++, last = d->rate[d->n_rates++]) {
        uint64_t next = 0;

        for (unsigned i = 0; i < f->n_links; i++)
            if (f->links[i].rate_bps < last && f->links[i].rate_bps > next)
                next = f->links[i].rate_bps;
        if (!next)
            return;
        d->rate[k] = next;
    }
}

struct drawing *drawing_new(const struct fabric *f)
{
    struct drawing *d = calloc(1, sizeof(*d));
    unsigned fold = f->n_hosts > FOLD_HOSTS ? FOLD_NODES : FOLD_NONE;

    if (!d)
        return NULL;
    d->box = calloc(f->n_nodes + 1u, sizeof(*d->box));
    d->line = calloc(f->n_links + 1u, sizeof(*d->line));
    d->box_of = calloc(f->n_nodes + 1u, sizeof(*d->box_of));
    for (; d->box && d->line && d->box_of && fold < FOLDS; fold++) {
        if (make_boxes(f, (enum fold)fold, d))
            break;
        drawing_place(f, (enum fold)fold, d);
        if (d->width > DRAWING_WIDTH && fold + 1 < FOLDS)
            continue;
        make_lines(f, d);
        if (d->n_lines > DRAWING_LINES && fold + 1 < FOLDS)
            continue;
        add_room(d);
        find_rates(f, d);
        return d;
    }
    drawing_free(d);
    return NULL;
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
