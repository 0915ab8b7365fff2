/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses the algorithm with the shortest predicted time. */
#include "collective/sched.h"
#include "model/predict.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void say(char *why, const struct coll_prediction *best, enum coll_algo algo,
                const struct coll_prediction *next, enum coll_algo second)
{
    double t = (double)best->time_ps / 1e6, u = (double)next->time_ps / 1e6;

    if (second == ALGO_AUTO)
        snprintf(why, COLL_WHY, "%s: %.2f us; nothing else can do it here", sched_algo_name(algo),
                 t);
    else
        snprintf(why, COLL_WHY, "%s: %.2f us, next best %s %.2f us (%.2f x)", sched_algo_name(algo),
                 t, sched_algo_name(second), u, t > 0 ? u / t : 1);
}

int coll_auto(const struct fabric *fab, const struct coll_args *a, unsigned nranks,
              const uint16_t *host_of_rank, const uint16_t *tree, unsigned n_trees, uint32_t window,
              unsigned allowed, enum coll_algo *algo, struct coll_prediction *p, char *why)
{
    struct coll_prediction next = {0};
    enum coll_algo best = ALGO_AUTO, second = ALGO_AUTO;

    for (enum coll_algo k = 0; k < ALGO_COUNT; k++) {
        struct coll_args one = *a;
        struct coll_prediction q;
        int rc;

        one.algo = k;
        if (!(allowed >> k & 1))
            continue;
        rc = coll_predict_trees(fab, &one, nranks, host_of_rank, tree, n_trees, window, &q);
        if (rc == -ENOTSUP || (!rc && q.guessed))
            continue;
        if (rc)
            return rc;
        if (best == ALGO_AUTO || q.time_ps < p->time_ps) {
            next = *p, second = best;
            *p = q, best = k;
        } else if (second == ALGO_AUTO || q.time_ps < next.time_ps) {
            next = q, second = k;
        }
    }
    if (best == ALGO_AUTO)
        return -ENOTSUP;
    *algo = best;
    say(why, p, best, &next, second);
    return 0;
}
