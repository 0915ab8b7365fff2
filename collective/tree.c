/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Double binary tree (Sanders, Speck and Träff: Two-tree algorithms for full bandwidth broadcast,
 * reduction and scan, 2009): each of two trees carries half of the vector, and a rank that has
 * children in one is a leaf in the other, so no rank sends or receives more than the vector once
 * each way, in steps that grow with log N only. The root is above both.
 *
 * Ranks are numbered from the root, which is 0; the trees are of 1..M, in order of number: in the
 * first, a number's height is that of its lowest bit, the second is the mirror image (M even) or
 * shifted by one (M odd), either of which swaps leaves with others.
 */
#include "base/assert.h"
#include "collective/alg.h"

#include <errno.h>
#include <stdlib.h>

#define KEPT 32u /* partial sums kept until their sends are acknowledged */

struct place {
    unsigned parent, n_children, child[2]; /* ranks */
    unsigned parent_chans, child_chans[2];
};

struct tree_piece {
    unsigned tree, chan;
    uint64_t off, len, k;
};

struct tree {
    struct nodes g;
    struct place at[2];
    struct tree_piece *piece;
    uint64_t n, room;
    unsigned height;
    uint64_t slice; /* the longest */
};

static unsigned up(unsigned v, unsigned m)
{
    unsigned low = v & -v, p = (v ^ low) | low << 1;

    return p > m ? v ^ low : p;
}

/* Parent of v in the tree, both as numbers from the root. */
static unsigned parent_of(unsigned tree, unsigned v, unsigned m)
{
    unsigned p;

    if (!tree)
        return up(v, m);
    if (m % 2) {
        p = up(v % m + 1, m);
        return p ? (p + m - 2) % m + 1 : 0;
    }
    p = up(m + 1 - v, m);
    return p ? m + 1 - p : 0;
}

static unsigned chans(const struct alg *a, unsigned from, unsigned to)
{
    struct stripes p;

    alg_stripes(a, from, to, &p);
    return p.n;
}

static void find_place(const struct alg *a, unsigned tree, struct place *at)
{
    unsigned n = a->s->in.nranks, root = a->s->in.root, me = a->s->in.rank;
    unsigned self = (me + n - root) % n;

    *at = (struct place){0};
    if (self) {
        at->parent = (parent_of(tree, self, n - 1) + root) % n;
        T_ASSERT(at->parent != me, "a rank is its own parent");
        at->parent_chans = chans(a, me, at->parent);
    }
    for (unsigned v = 1; v < n; v++)
        if (v != self && parent_of(tree, v, n - 1) == self) {
            T_ASSERT(at->n_children < 2, "a rank with three children in a binary tree");
            at->child[at->n_children] = (v + root) % n;
            at->child_chans[at->n_children] = chans(a, me, at->child[at->n_children]);
            at->n_children++;
        }
}

static int add_piece(struct tree *t, unsigned tree, const struct cut *c, uint64_t off)
{
    if (t->n == t->room) {
        uint64_t room = t->room ? 2 * t->room : 64;
        void *p = realloc(t->piece, room * sizeof(*t->piece));

        if (!p)
            return -ENOMEM;
        t->piece = p;
        t->room = room;
    }
    t->piece[t->n++] = (struct tree_piece){tree, c->chan, off + c->off, c->len, c->k};
    return 0;
}

/* The slices in the order that all ranks use: the trees in turn. */
static int cut_pieces(struct alg *a, struct tree *t, uint64_t bytes)
{
    uint64_t off[2], len[2];
    struct cut c[2];
    bool more = true;
    int rc = 0;

    for (unsigned i = 0; i < 2; i++) {
        sched_part(bytes, a->s->esize, 2, i, &off[i], &len[i]);
        c[i] = alg_cut(a, &t->g.all.ring, len[i], ALG_SLICES * t->height);
    }
    t->slice = alg_slice(a, len[0], ALG_SLICES * t->height);
    while (more && !rc) {
        more = false;
        for (unsigned i = 0; i < 2 && !rc; i++)
            if (alg_next(&c[i])) {
                more = true;
                rc = add_piece(t, i, &c[i], off[i]);
            }
    }
    return rc;
}

static int tree_begin(struct alg *a, struct tree *t, uint64_t bytes)
{
    int rc = alg_everybody(a, &t->g);

    t->piece = NULL;
    t->n = t->room = t->height = 0;
    while (1u << t->height < a->s->in.nranks)
        t->height++;
    for (unsigned i = 0; i < 2; i++)
        find_place(a, i, &t->at[i]);
    return rc ? rc : cut_pieces(a, t, bytes);
}

static void tree_end(struct tree *t)
{
    free(t->piece);
    alg_nodes_free(&t->g);
}

static bool is_root(const struct alg *a)
{
    return a->s->in.rank == a->s->in.root;
}

/* Sums go to BUF_OUT where the rank has one, else to BUF_TMP. */
static void piece_up(struct alg *a, struct tree *t, const struct tree_piece *p)
{
    const struct place *at = &t->at[p->tree];
    struct ref in = alg_ref(BUF_IN, p->off), sum = alg_ref(BUF_OUT, p->off);

    if (!a->s->out_bytes)
        sum = alg_ref(BUF_TMP,
                      ((p->tree * t->g.all.ring.n + p->chan) * KEPT + p->k % KEPT) * t->slice);
    for (unsigned i = 0; i < at->n_children; i++)
        alg_recv_reduce(a, at->child[i], p->chan % at->child_chans[i], sum, i ? sum : in, p->len,
                        is_root(a) && i + 1 == at->n_children);
    if (!is_root(a))
        alg_send(a, at->parent, p->chan % at->parent_chans, at->n_children ? sum : in, p->len);
}

static void piece_down(struct alg *a, struct tree *t, const struct tree_piece *p, bool caused)
{
    const struct place *at = &t->at[p->tree];
    struct ref out = alg_ref(BUF_OUT, p->off);
    struct ref from = is_root(a) && !caused ? alg_ref(BUF_IN, p->off) : out;

    if (!is_root(a))
        (caused ? alg_recv_caused : alg_recv)(a, at->parent, p->chan % at->parent_chans, out,
                                              p->len);
    for (unsigned i = 0; i < at->n_children; i++)
        alg_send(a, at->child[i], p->chan % at->child_chans[i], from, p->len);
}

/* Results go down some slices later, so that they do not delay those that go up the same lane. */
int alg_tree_allreduce(struct alg *a)
{
    struct tree t;
    uint64_t lag;
    int rc = tree_begin(a, &t, a->s->in_bytes);

    lag = 2ULL * t.g.all.ring.n * (2 * t.height + 2);
    for (uint64_t i = 0; !rc && i < t.n + lag; i++) {
        if (i < t.n)
            piece_up(a, &t, &t.piece[i]);
        if (i >= lag && i - lag < t.n)
            piece_down(a, &t, &t.piece[i - lag], true);
    }
    tree_end(&t);
    return rc;
}

int alg_tree_reduce(struct alg *a)
{
    struct tree t;
    int rc = tree_begin(a, &t, a->s->in_bytes);

    if (!rc && !a->s->out_bytes)
        alg_tmp(a, 2ULL * t.g.all.ring.n * KEPT * t.slice);
    for (uint64_t i = 0; !rc && i < t.n; i++)
        piece_up(a, &t, &t.piece[i]);
    tree_end(&t);
    return rc;
}

int alg_tree_broadcast(struct alg *a)
{
    struct tree t;
    int rc = tree_begin(a, &t, a->s->out_bytes);

    if (!rc && is_root(a) && !a->s->in.in_place)
        alg_copy(a, alg_ref(BUF_OUT, 0), alg_ref(BUF_IN, 0), a->s->out_bytes, false);
    for (uint64_t i = 0; !rc && i < t.n; i++)
        piece_down(a, &t, &t.piece[i], false);
    tree_end(&t);
    return rc;
}
