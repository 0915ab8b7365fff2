/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arbitrary schedules: a refusal names at least one mistake. What is accepted has a schedule for
 * every rank, whose steps stay within the buffers and whose messages have two ends of one length.
 */
#include "collective/file/sched_file.h"
#include "collective/sched.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#define RANKS 16u /* of those that are run */

static void check_ref(const struct sched *s, const struct ref *r, uint64_t len)
{
    uint64_t bytes = r->buf == BUF_IN    ? s->in_bytes
                     : r->buf == BUF_OUT ? s->out_bytes
                     : r->buf == BUF_TMP ? s->tmp_bytes
                                         : UINT64_MAX;

    check(r->off <= bytes && len <= bytes - r->off, "a step beyond its buffer");
}

static void check_rank(const struct sched *all, unsigned rank)
{
    const struct sched *s = &all[rank];

    for (unsigned l = 0; l < s->n_lanes; l++) {
        const struct lane *lane = &s->lane[l];
        unsigned far = 0;

        if (lane->kind == LANE_SEND)
            check(sched_has_lane(&all[lane->peer], LANE_RECV, rank, lane->chan, &far) &&
                      all[lane->peer].lane[far].n == lane->n,
                  "messages with one end");
        for (uint32_t i = 0; i < lane->n; i++) {
            const struct step *st = lane_step(lane, i);

            check_ref(s, &st->a, st->len);
            check_ref(s, &st->b, st->len);
            check_ref(s, &st->dst, st->len);
            if (lane->kind == LANE_SEND)
                check(lane_step(&all[lane->peer].lane[far], i)->len == st->len,
                      "a message of two lengths");
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fab_errors errs;
    static struct sched all[RANKS];
    struct sched_file *f;
    char *text = malloc(size + 1);

    if (!text)
        abort();
    memcpy(text, data, size);
    text[size] = 0;
    f = sched_file_parse(text, "fuzz.sched", &errs);
    free(text);
    check(f ? errs.total == 0 : errs.n > 0, "a refusal without a reason, or the reverse");
    for (unsigned place = 0; f && f->nranks <= RANKS && place < 2; place++) {
        struct sched_in in = {.kind = f->kind,
                              .algo = ALGO_SCHEDULE,
                              .nranks = f->nranks,
                              .root = f->root,
                              .count = 1000,
                              .type = DT_FP32,
                              .in_place = place,
                              .mtu = 1024,
                              .file = f};

        if (!f->place[place])
            continue;
        for (in.rank = 0; in.rank < f->nranks; in.rank++)
            check(!sched_init(&all[in.rank], &in), "no schedule for a rank");
        for (unsigned r = 0; r < f->nranks; r++)
            check_rank(all, r);
        for (unsigned r = 0; r < f->nranks; r++)
            sched_free(&all[r]);
    }
    sched_file_free(f);
    return 0;
}
