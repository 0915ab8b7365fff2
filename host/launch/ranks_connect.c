/* SPDX-License-Identifier: BSD-3-Clause */
/* Connects the ranks of a sweep into one communicator. */
#include "collective/file/sched_file.h"
#include "host/launch/msg_read.h"
#include "host/launch/ranks_priv.h"
#include "system/credential.h"

#include <errno.h>
#include <fcntl.h>
#include <rte_common.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_S     60.0 /* EAL, memif and JOINs of all ranks on a slow machine */
#define CONNECT_LEAST 10.0 /* seconds to connect, whatever --max-wall is, */
#define CONNECT_RANK  1.0  /* plus this for each rank */

/* Ranks elsewhere have no run directory: they get the text of the fabric's conf. */
static int send_fabric(struct sweep *s)
{
    int fd = rundir_file(s->rd, O_RDONLY, "fabric.conf"), rc = 0;
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
    char *text = NULL;
    size_t size = 0;

    if (!f)
        return fd < 0 ? fd : -errno;
    if (getdelim(&text, &size, 0, f) < 0)
        rc = -EIO;
    fclose(f);
    for (unsigned r = 0; !rc && r < s->nranks; r++)
        if (rank_is_elsewhere(s, r))
            job_send(s->job, r, MSG_FABRIC, text, strlen(text));
    free(text);
    return rc;
}

static void send_schedule(struct sweep *s)
{
    const char *text = s->o->file ? s->o->file->text : "";
    size_t bytes = strlen(text);

    for (unsigned r = 0; r < s->nranks; r++)
        for (size_t at = 0; at < bytes; at += RTE_MIN(bytes - at, (size_t)MSG_MAX))
            job_send(s->job, r, MSG_SCHEDULE, text + at, RTE_MIN(bytes - at, (size_t)MSG_MAX));
}

/* Sends INIT to each rank, with a random id and key for the group, which no other job of the fabric
 * has. */
static int send_init(struct sweep *s)
{
    size_t hosts = s->nranks * sizeof(s->host_of_rank[0]);
    uint8_t body[sizeof(struct msg_init) + sizeof(s->host_of_rank)];
    struct msg_init in = {.nranks = s->nranks,
                          .window = s->o->window,
                          .algos = s->set_up,
                          .n_trees = s->n_trees,
                          .n_policy = s->o->n_policy,
                          .schedule = s->o->file ? (uint32_t)strlen(s->o->file->text) : 0,
                          .timeline = s->timeline != NULL,
                          .gpu = s->o->gpu,
                          .buf_bytes = options_buffer(s->o, s->nranks)};

    for (unsigned i = 0; i < s->o->n_policy; i++)
        in.policy[i] = (uint8_t)s->o->policy[i];
    memcpy(in.tree, s->tree, sizeof(in.tree));

    if (credential_random(&in.group, sizeof(in.group)) ||
        credential_random(&in.key, sizeof(in.key)))
        return -EIO;
    for (unsigned r = 0; r < s->nranks; r++) {
        in.rank = r;
        memcpy(body, &in, sizeof(in));
        memcpy(body + sizeof(in), s->host_of_rank, hosts);
        job_send(s->job, r, MSG_INIT, body, sizeof(in) + hosts);
    }
    return 0;
}

static int take_blob(void *ctx, unsigned rank, const struct msg *m)
{
    struct answers *a = ctx;

    T_ASSERT(a->blobs && rank < a->s->nranks, "a blob comes when no ranks are being connected");
    return msg_read(m, a->blobs + (size_t)rank * COMM_BLOB, COMM_BLOB);
}

int ranks_connect(struct sweep *s)
{
    struct answers a = {.s = s};
    double until = s->o->max_wall, least = CONNECT_LEAST + CONNECT_RANK * s->nranks;
    int64_t began = clock_mono_ns();
    struct job_limits l = {.bound = "ranks not connected: --max-wall is over"};

    until = RTE_MIN(RTE_MAX(until, least), 2 * CONNECT_S);
    a.blobs = calloc(s->nranks, COMM_BLOB);
    if (!a.blobs)
        return -ENOMEM;
    if (s->dilation.adaptive)
        ranks_set_dilation(s, DILATION_CONTROL);
    sweep_show(s, "connecting ranks");
    int rc = send_init(s);
    if (!rc)
        rc = send_fabric(s);
    if (!rc)
        send_schedule(s);
    if (!rc)
        l.seconds = until, rc = job_gather_within(s->job, MSG_HELLO, &l, take_blob, NULL, &a);
    if (!rc)
        rc = job_bcast(s->job, MSG_CONNECT, a.blobs, (size_t)s->nranks * COMM_BLOB);
    if (!rc)
        l.seconds = until - (double)(clock_mono_ns() - began) * 1e-9,
        rc = job_gather_within(s->job, MSG_DONE, &l, ranks_take_done, NULL, &a);
    if (!rc)
        rc = job_bcast(s->job, MSG_GRANTED, NULL, 0);
    if (!rc)
        l.seconds = until - (double)(clock_mono_ns() - began) * 1e-9,
        rc = job_gather_within(s->job, MSG_DONE, &l, ranks_take_done, NULL, &a);
    free(a.blobs);
    sweep_show(s, "");
    return rc;
}
