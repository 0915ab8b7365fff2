/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugins/sharp/sharp_priv.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

const struct sharp_coll_config sharp_coll_default_config = {.user_progress_num_polls = 128,
                                                            .coll_timeout = -1};
const char *const sharp_kind_name[SHARP_KINDS] = {"barrier",        "allreduce", "reduce",
                                                  "reduce_scatter", "allgather", "bcast"};

/* Two locks, so that a thread that polls in a loop lets others in: it waits at the gate behind
 * them. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER, lock = PTHREAD_MUTEX_INITIALIZER;
struct sharp_coll_context *sharp_contexts;
struct sharp_coll_comm *sharp_comms;

void sharp_lock(void)
{
    pthread_mutex_lock(&gate);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&gate);
}

void sharp_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

bool sharp_is_context(const struct sharp_coll_context *ctx)
{
    const struct sharp_coll_context *c;

    for (c = sharp_contexts; c && c != ctx; c = c->next)
        ;
    return c != NULL;
}

/* ---- what the processes agree on ---- */

/* Small, because UCC turns a gather or broadcast into an all-gather. */
struct sharp_hello {
    int32_t status;
    uint32_t rank, size;
    uint32_t pad;
    uint64_t job_id;
    char why[104];
};

static void hellos_judge(struct sharp_hello *all, uint32_t n, struct sharp_hello *verdict)
{
    for (uint32_t r = 0; r < n && !verdict->status; r++) {
        if (all[r].status) {
            *verdict = all[r];
            verdict->why[sizeof(verdict->why) - 1] = 0;
        } else if (all[r].job_id != all[0].job_id || all[r].size != n || all[r].rank != r) {
            *verdict = all[r];
            verdict->status = SHARP_COLL_EJOB_CREATE;
            snprintf(verdict->why, sizeof(verdict->why),
                     "found job %" PRIx64 ", rank %u of %u, expected job %" PRIx64
                     ", rank %u of %u",
                     all[r].job_id, all[r].rank, all[r].size, all[0].job_id, r, n);
        }
        verdict->rank = r;
    }
}

/* Agrees on a status: if this rank has none of its own, it gets that of a rank that failed. */
static int status_agree(const struct sharp_coll_init_spec *spec, int status, char *why)
{
    uint32_t n = (uint32_t)spec->world_size;
    struct sharp_hello mine = {.status = status,
                               .rank = (uint32_t)spec->world_rank,
                               .size = n,
                               .job_id = spec->job_id},
                       verdict = {0}, *all = NULL;

    snprintf(mine.why, sizeof(mine.why), "%.*s", (int)sizeof(mine.why) - 1, why);
    all = calloc(n, sizeof(*all));
    if (!all && !mine.status)
        mine.status = SHARP_COLL_ENOMEM;
    if (!all || spec->oob_colls.gather(spec->oob_ctx, 0, &mine, all, sizeof(mine))) {
        snprintf(why, SHARP_TEXT, "init: the out-of-band gather has failed");
        free(all);
        return SHARP_COLL_EOOB;
    }
    if (!spec->world_rank)
        hellos_judge(all, n, &verdict);
    free(all);
    if (spec->oob_colls.bcast(spec->oob_ctx, &verdict, sizeof(verdict), 0)) {
        snprintf(why, SHARP_TEXT, "init: the out-of-band broadcast has failed");
        return SHARP_COLL_EOOB;
    }
    if (status || !verdict.status)
        return status;
    verdict.why[sizeof(verdict.why) - 1] = 0;
    snprintf(why, SHARP_TEXT, "rank %u of the job: %s", verdict.rank, verdict.why);
    return verdict.status;
}

/* ---- life ---- */

static const char *bad_spec(const struct sharp_coll_init_spec *s)
{
    if (s->world_size < 1 || s->world_rank < 0 || s->world_rank >= s->world_size ||
        s->world_size > 1 << 20)
        return "world_rank and world_size";
    if (!s->oob_colls.bcast || !s->oob_colls.barrier || !s->oob_colls.gather)
        return "oob_colls";
    return NULL;
}

static int sharp_init_prepare(struct sharp_coll_context *ctx,
                              const struct sharp_coll_init_spec *spec, char *why)
{
    int rc = sharp_conf_read(&ctx->conf, why);

    sharp_log_level(ctx->conf.value[SHARP_VAR_LOG_LEVEL]);
    return rc ? rc : sharp_devices_open(spec->config.ib_dev_list, why);
}

int sharp_coll_init(struct sharp_coll_init_spec *spec, struct sharp_coll_context **context)
{
    struct sharp_coll_context *ctx;
    char why[SHARP_TEXT] = "", names[SHARP_TEXT];
    int rc;

    if (context)
        *context = NULL;
    if (!spec || !context)
        return sharp_refuse(SHARP_COLL_EINVAL, "init: found no %s", spec ? "context" : "spec");
    if (bad_spec(spec))
        return sharp_refuse(SHARP_COLL_EINVAL, "init: found %s that cannot be: rank %d of %d",
                            bad_spec(spec), spec->world_rank, spec->world_size);
    ctx = calloc(1, sizeof(*ctx));
    if (!ctx)
        return sharp_refuse(SHARP_COLL_ENOMEM, "out of memory");
    *ctx = (struct sharp_coll_context){
        .rank = (uint32_t)spec->world_rank,
        .size = (uint32_t)spec->world_size,
        .oob = spec->oob_colls,
        .progress = spec->progress_func,
        .polls = spec->config.user_progress_num_polls,
        .timeout_ms = spec->config.coll_timeout,
        .hide =
            spec->config.flags & SHARP_COLL_HIDE_ERRORS && !sharp_conf_said(SHARP_VAR_LOG_LEVEL),
    };
    rc = status_agree(spec, sharp_init_prepare(ctx, spec, why), why);
    if (rc) {
        sharp_say(ctx->hide ? SHARP_LOG_DEBUG : SHARP_LOG_ERROR, 0, "init: %s", why);
        free(ctx);
        return rc;
    }
    sharp_conf_unknown(names, sizeof(names));
    if (*names)
        sharp_say(SHARP_LOG_INFO, 0, "variables that mean nothing here: %s", names);
    sharp_say(SHARP_LOG_INFO, 0, "job %" PRIx64 ": rank %u of %u", spec->job_id, ctx->rank,
              ctx->size);
    sharp_lock();
    ctx->next = sharp_contexts;
    sharp_contexts = ctx;
    sharp_unlock();
    *context = ctx;
    return SHARP_COLL_SUCCESS;
}

static struct sharp_coll_comm *take_comm(const struct sharp_coll_context *ctx)
{
    struct sharp_coll_comm *c = NULL;

    sharp_lock();
    for (struct sharp_coll_comm **at = &sharp_comms; *at; at = &(*at)->next)
        if ((*at)->ctx == ctx) {
            c = *at;
            *at = c->next;
            sharp_reqs_lose(c);
            break;
        }
    sharp_unlock();
    return c;
}

int sharp_coll_finalize(struct sharp_coll_context *ctx)
{
    struct sharp_coll_comm *c;
    unsigned left = 0;
    bool found;

    sharp_lock();
    found = sharp_is_context(ctx);
    sharp_unlock();
    if (!found)
        return sharp_refuse(SHARP_COLL_EINVAL, "finalize: found no context");
    if (ctx->conf.value[SHARP_VAR_STATS_DUMP_MODE])
        sharp_coll_dump_stats(ctx);
    for (; (c = take_comm(ctx)); left++)
        sharp_comm_end(c);
    if (left)
        sharp_say(SHARP_LOG_WARN, 0, "finalize: %u communicators were not destroyed before", left);
    sharp_lock();
    for (struct sharp_coll_context **at = &sharp_contexts; *at; at = &(*at)->next)
        if (*at == ctx) {
            *at = ctx->next;
            break;
        }
    sharp_mem_end(ctx);
    sharp_unlock();
    free(ctx);
    return SHARP_COLL_SUCCESS;
}

/* ---- questions ---- */

int sharp_coll_caps_query(struct sharp_coll_context *ctx, struct sharp_coll_caps *caps)
{
    enum trib_type type;
    int op, rc = SHARP_COLL_SUCCESS;

    sharp_lock();
    if (!caps || !sharp_is_context(ctx)) {
        rc = sharp_refuse(SHARP_COLL_EINVAL, "caps_query: found no %s",
                          caps ? "context" : "place for them");
    } else {
        *caps = (struct sharp_coll_caps){.sharp_pkt_version = 1};
        for (unsigned t = 0; t < SHARP_DTYPE_NULL; t++)
            if (sharp_type((enum sharp_datatype)t, &type))
                caps->support_mask.dtypes |= UINT64_C(1) << t;
        for (unsigned o = 0; o < SHARP_OP_NULL; o++)
            if (sharp_op((enum sharp_reduce_op)o, &op))
                caps->support_mask.reduce_ops |= UINT64_C(1) << o;
        caps->support_mask.tag_dtypes = UINT64_C(1) << SHARP_DTYPE_INT;
        caps->support_mask.feature_mask =
            SHARP_FEATURE_LLT | SHARP_FEATURE_REPRODUCIBLE |
            (ctx->conf.value[SHARP_VAR_ENABLE_SAT] ? SHARP_FEATURE_SAT : 0);
    }
    sharp_unlock();
    return rc;
}

int sharp_coll_progress(struct sharp_coll_context *ctx)
{
    int rc = SHARP_COLL_SUCCESS;

    sharp_lock();
    if (sharp_is_context(ctx))
        sharp_progress();
    else
        rc = sharp_refuse(SHARP_COLL_EINVAL, "progress: found no context");
    sharp_unlock();
    return rc;
}

int sharp_coll_dump_stats(struct sharp_coll_context *ctx)
{
    int rc = SHARP_COLL_SUCCESS;

    sharp_lock();
    if (sharp_is_context(ctx)) {
        for (unsigned k = 0; k < SHARP_KINDS; k++)
            if (ctx->stats[k].n)
                fprintf(stderr,
                        "sharp: rank %u: %" PRIu64 " %s, %" PRIu64 " bytes, %" PRIu64
                        " calls by hosts\n",
                        ctx->rank, ctx->stats[k].n, sharp_kind_name[k], ctx->stats[k].bytes,
                        ctx->stats[k].by_hosts);
    } else {
        rc = sharp_refuse(SHARP_COLL_EINVAL, "dump_stats: found no context");
    }
    sharp_unlock();
    return rc;
}
