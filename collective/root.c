/* SPDX-License-Identifier: BSD-3-Clause */
/* Gather, scatter, a message to the neighbour; and the barrier, in log2 N rounds (dissemination) or
 * with all peers at once. */
#include "collective/alg.h"

int alg_gather(struct alg *a)
{
    unsigned n = a->s->in.nranks, me = a->s->in.rank, root = a->s->in.root;
    uint64_t each = a->s->in_bytes;

    if (me != root) {
        alg_send_all(a, root, alg_ref(BUF_IN, 0), each);
        return 0;
    }
    if (!a->s->in.in_place)
        alg_copy(a, alg_ref(BUF_OUT, me * each), alg_ref(BUF_IN, 0), each, false);
    for (unsigned i = 1; i < n; i++) {
        unsigned r = (me + i) % n;

        alg_recv_all(a, r, alg_ref(BUF_OUT, r * each), each, false);
    }
    return 0;
}

int alg_scatter(struct alg *a)
{
    unsigned n = a->s->in.nranks, me = a->s->in.rank, root = a->s->in.root;
    uint64_t each = a->s->out_bytes;

    if (me != root) {
        alg_recv_all(a, root, alg_ref(BUF_OUT, 0), each, false);
        return 0;
    }
    for (unsigned i = 1; i < n; i++) {
        unsigned r = (me + i) % n;

        alg_send_all(a, r, alg_ref(BUF_IN, r * each), each);
    }
    if (!a->s->in.in_place)
        alg_copy(a, alg_ref(BUF_OUT, 0), alg_ref(BUF_IN, me * each), each, false);
    return 0;
}

int alg_sendrecv(struct alg *a)
{
    unsigned n = a->s->in.nranks, me = a->s->in.rank;

    alg_send_all(a, (me + 1) % n, alg_ref(BUF_IN, 0), a->s->in_bytes);
    alg_recv_all(a, (me + n - 1) % n, alg_ref(BUF_OUT, 0), a->s->out_bytes, false);
    return 0;
}

/* After the round of distance d a rank knows that the 2d ranks up to itself have entered. */
int alg_barrier(struct alg *a)
{
    unsigned n = a->s->in.nranks, me = a->s->in.rank;
    bool at_once = a->s->in.algo == ALGO_DIRECT;
    struct dep came[32];
    unsigned rounds = 0;

    for (unsigned d = 1; d < n; d = at_once ? d + 1 : 2 * d) {
        struct dep wait;

        alg_signal(a, (me + d) % n, came, rounds);
        wait = alg_wait_signal(a, (me + n - d) % n);
        if (!at_once)
            came[rounds++] = wait;
    }
    return 0;
}
