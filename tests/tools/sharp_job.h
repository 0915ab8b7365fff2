/* SPDX-License-Identifier: BSD-3-Clause */
/* What programs that call SHARP's interface share: a job over a store. */
#ifndef TRIB_TESTS_TOOLS_SHARP_JOB_H
#define TRIB_TESTS_TOOLS_SHARP_JOB_H

#include <sharp/api/sharp.h>
#include <tributary/coll.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;
static unsigned checked;

#define must(cond, ...)                                                                            \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "rank %d, line %d: expected %s: ", rank, __LINE__, #cond);             \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* ---- a job ---- */

static inline int oob_bcast(void *ctx, void *buf, int len, int root)
{
    struct trib_oob *o = ctx;

    return o->bcast(o->ctx, buf, (size_t)len, (uint32_t)root);
}

static inline int oob_barrier(void *ctx)
{
    struct trib_oob *o = ctx;

    return o->barrier(o->ctx);
}

static inline int oob_gather(void *ctx, int root, void *sbuf, void *rbuf, int len)
{
    struct trib_oob *o = ctx;
    int rc;

    must(len <= 512, "small messages, not %d bytes", len);
    rc = o->gather(o->ctx, (uint32_t)root, sbuf, rbuf, (size_t)len);
    return rc;
}

static uint32_t job_flags; /* of the configuration */

/* As both callers: zeros first, a copy of the default configuration, a device list that goes away. */
static inline int open_context(struct sharp_coll_context **ctx, struct trib_oob *oob, uint64_t job)
{
    struct sharp_coll_init_spec spec = {0};
    char devices[] = "";
    int rc;

    spec.job_id = job;
    spec.world_rank = rank;
    spec.world_size = size;
    spec.enable_thread_support = 1;
    spec.oob_colls = (struct sharp_coll_out_of_band_colls){oob_bcast, oob_barrier, oob_gather};
    spec.oob_ctx = oob;
    spec.config = sharp_coll_default_config;
    spec.config.user_progress_num_polls = 10000000;
    spec.config.ib_dev_list = devices;
    spec.config.flags |= job_flags;
    rc = sharp_coll_init(&spec, ctx);
    memset(&spec, 0xa5, sizeof(spec));
    memset(devices, 0xa5, sizeof(devices));
    return rc;
}

static inline int open_comm(struct sharp_coll_context *ctx, struct trib_oob *oob,
                            struct sharp_coll_comm **comm)
{
    struct sharp_coll_comm_init_spec spec;

    memset(&spec, 0xa5, sizeof(spec));
    spec.rank = (int)oob->rank;
    spec.size = (int)oob->size;
    spec.oob_ctx = oob;
    spec.group_world_ranks = NULL;
    return sharp_coll_comm_init(ctx, &spec, comm);
}

#endif
