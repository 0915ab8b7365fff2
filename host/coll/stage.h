/* Schedules for buffers in GPU memory (stage.c). Pure, like the schedules themselves. */
#ifndef TRIB_COLL_STAGE_H
#define TRIB_COLL_STAGE_H

#include "host/coll/sched.h"

/* Peers of the lanes of copies: CPU lanes, of which no rank is one. */
#define STAGE_UP   (FAB_MAX_MEMBERS + 1u) /* to host memory */
#define STAGE_DOWN (FAB_MAX_MEMBERS + 2u)

/* s: BUF_IN, BUF_OUT and BUF_TMP are a GPU's and no message touches them, but for those that are
 * sent from there, where HCAs reach them; s->stage_bytes of host memory (BUF_STAGE) are needed. 0,
 * -ENOMEM, -E2BIG, -ENOTSUP (multimem: NVSwitches read and write buffers without the rank's doing).
 * After an error s is as it was. */
int sched_stage(struct sched *s, bool reached);

#endif
