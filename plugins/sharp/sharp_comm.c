/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugins/sharp/sharp_priv.h"

#include <stdlib.h>
#include <string.h>

bool sharp_is_comm(const struct sharp_coll_comm *comm)
{
    const struct sharp_coll_comm *c;

    for (c = sharp_comms; c && c != comm; c = c->next)
        ;
    return c != NULL;
}

/* ---- out of band ---- */

static int sharp_comm_note(struct sharp_coll_comm *c, int rc)
{
    c->oob_failed |= rc != 0;
    return rc;
}

static int oob_bcast(void *ctx, void *buf, size_t bytes, uint32_t root)
{
    struct sharp_coll_comm *c = ctx;

    return sharp_comm_note(c, c->ctx->oob.bcast(c->oob_ctx, buf, (int)bytes, (int)root));
}

static int oob_gather(void *ctx, uint32_t root, const void *mine, void *all, size_t bytes)
{
    struct sharp_coll_comm *c = ctx;

    return sharp_comm_note(
        c, c->ctx->oob.gather(c->oob_ctx, (int)root, (void *)(uintptr_t)mine, all, (int)bytes));
}

static int oob_barrier(void *ctx)
{
    struct sharp_coll_comm *c = ctx;

    return sharp_comm_note(c, c->ctx->oob.barrier(c->oob_ctx));
}

/* ---- life ---- */

/* Creates the communicator. If switches refuse its group, creation fails, so that the caller uses
 * its other transports; if they fail later, hosts take over. All ranks see the same number of
 * trees. */
static int sharp_comm_create(struct sharp_coll_comm *c, char *why)
{
    struct trib_oob oob = {c, c->rank, c->size, oob_bcast, oob_gather, oob_barrier};
    struct trib_comm_options options = {
        .algo = "sharp,ring", .window = (uint32_t)c->ctx->conf.value[SHARP_VAR_OSTS_PER_GROUP]};
    char refused[TRIB_TEXT] = "";
    int rc = trib_comm_create(&c->trib, &oob, &options, why);

    if (rc)
        return c->oob_failed ? SHARP_COLL_EOOB : sharp_status(rc);
    if (c->size == 1 || trib_comm_trees(c->trib, refused))
        return SHARP_COLL_SUCCESS;
    trib_comm_destroy(c->trib);
    snprintf(why, TRIB_TEXT, "%s",
             *refused ? refused : "found no aggregation node that reaches all ranks");
    return *refused ? SHARP_COLL_ENO_RESOURCE : SHARP_COLL_ENOTREE;
}

static int sharp_comm_check(const struct sharp_coll_context *ctx,
                            const struct sharp_coll_comm_init_spec *spec)
{
    if (!sharp_is_context(ctx))
        return sharp_refuse(SHARP_COLL_EINVAL, "comm_init: found no context");
    if (spec->size < 1 || spec->rank < 0 || spec->rank >= spec->size ||
        (uint32_t)spec->size > ctx->size)
        return sharp_refuse(SHARP_COLL_EINVAL,
                            "comm_init: found rank %d of %d, expected one of 1 to %u", spec->rank,
                            spec->size, ctx->size);
    return SHARP_COLL_SUCCESS;
}

int sharp_coll_comm_init(struct sharp_coll_context *ctx, struct sharp_coll_comm_init_spec *spec,
                         struct sharp_coll_comm **comm)
{
    struct sharp_coll_comm *c;
    char why[TRIB_TEXT] = "";
    int rc;

    if (comm)
        *comm = NULL;
    if (!spec || !comm)
        return sharp_refuse(SHARP_COLL_EINVAL, "comm_init: found no %s", spec ? "comm" : "spec");
    sharp_lock();
    rc = sharp_comm_check(ctx, spec);
    sharp_unlock();
    if (rc)
        return rc;
    c = calloc(1, sizeof(*c));
    if (!c)
        return sharp_refuse(SHARP_COLL_ENOMEM, "out of memory");
    *c = (struct sharp_coll_comm){.ctx = ctx,
                                  .oob_ctx = spec->oob_ctx,
                                  .rank = (uint32_t)spec->rank,
                                  .size = (uint32_t)spec->size};
    rc = sharp_comm_create(c, why);
    if (rc) {
        sharp_say(ctx->hide ? SHARP_LOG_DEBUG : SHARP_LOG_ERROR, 0, "comm_init: rank %u of %u: %s",
                  c->rank, c->size, why);
        free(c);
        return rc;
    }
    sharp_lock();
    c->next = sharp_comms;
    sharp_comms = c;
    sharp_unlock();
    *comm = c;
    return SHARP_COLL_SUCCESS;
}

void sharp_comm_end(struct sharp_coll_comm *c)
{
    trib_comm_destroy(c->trib);
    free(c);
}

int sharp_coll_comm_destroy(struct sharp_coll_comm *comm)
{
    bool found = false;

    sharp_lock();
    for (struct sharp_coll_comm **at = &sharp_comms; *at && !found; at = &(*at)->next)
        if (*at == comm) {
            *at = comm->next;
            found = true;
            sharp_reqs_lose(comm);
            break;
        }
    sharp_unlock();
    if (!found)
        return sharp_refuse(SHARP_COLL_EINVAL, "comm_destroy: found no communicator");
    sharp_comm_end(comm);
    return SHARP_COLL_SUCCESS;
}
