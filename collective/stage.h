/* SPDX-License-Identifier: BSD-3-Clause */
/* Schedules for buffers in GPU memory (stage.c). Pure, like the schedules themselves. */
#ifndef TRIB_COLLECTIVE_STAGE_H
#define TRIB_COLLECTIVE_STAGE_H

#include "collective/sched.h"

/* Peers of the lanes of copies: CPU lanes, of which no rank is one. */
#define STAGE_UP   (FAB_MAX_MEMBERS + 1u) /* to host memory */
#define STAGE_DOWN (FAB_MAX_MEMBERS + 2u)

/*
 * A hint on a REDUCE whose result is copied up next: the reduction may write its result to the
 * message's stage buffer as well, if that is free by then, and the copy has nothing left to do. The
 * step carries it as region BUF_STAGE, `off` and `copy`, which other steps of the CPU do not use.
 */
struct stage_hint {
    uint32_t up, step;  /* the copy: its lane, and which of its steps */
    uint32_t send;      /* lane of messages; the buffer is free when this many of them are done: */
    uint64_t free_from; /* step + 1 - BUFFERS, or 0 */
    uint64_t off;       /* of the buffer in BUF_STAGE */
};
/* false: there is none. */
bool stage_hint(const struct sched *s, const struct step *st, struct stage_hint *h);

/* s: BUF_IN, BUF_OUT and BUF_TMP are a GPU's and no message touches them, but for those that are
 * sent from there, where HCAs reach them; s->stage_bytes of host memory (BUF_STAGE) are needed. 0,
 * -ENOMEM, -E2BIG, -ENOTSUP (multimem: NVSwitches read and write buffers without the rank's doing).
 * After an error s is as it was. */
int sched_stage(struct sched *s, bool reached);

#endif
