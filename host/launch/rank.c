/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every wait of a rank serves its communicator, whose progress other ranks may need, and the
 * launcher's socket, which may bring an abort or close. While an operation runs, comm_progress()
 * yields or sleeps when idle. While the rank waits for a command, poll() sleeps, longer after 50
 * ms.
 */
#include "host/launch/rank.h"
#include "collective/file/sched_file.h"
#include "host/bench/dilation_control.h"
#include "host/launch/msg_read.h"
#include "host/launch/rank_priv.h"
#include "protocols/host/load.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOK_NS      2000000 /* between two checks of socket and clock during an operation */
#define CLOSE_NS     2000000000
#define WAIT_LONG_NS 50000000 /* sleep longer after this time without a command */

int rank_fail(struct launch_rank *k, const char *what, const char *why)
{
    if (!k->failed)
        snprintf(k->text, sizeof(k->text), "%s%s%s", what, why && *why ? ": " : "", why ? why : "");
    k->failed = true;
    return -ECANCELED;
}

/* ---- the launcher's socket ---- */

/* Reads a message, without waiting. 1: *m; 0: none; -ECANCELED: aborted, or the launcher is gone.
 */
static int rank_take(struct launch_rank *k, struct msg *m)
{
    int rc = msg_next(&k->in, m);

    if (rc == 0) {
        rc = msg_fill(&k->in, k->fd);
        if (rc > 0)
            rc = msg_next(&k->in, m);
    }
    if (rc < 0) {
        k->aborted = true;
        return rank_fail(k, "the launcher is gone", NULL);
    }
    if (rc > 0 && m->type == MSG_ABORT) {
        k->aborted = true;
        k->failed = true;
        msg_read_text(m, k->text, sizeof(k->text));
        return -ECANCELED;
    }
    return rc;
}

/*
 * Advances the clock of control retries: wall time, slowed down at a high dilation, at which
 * answers take longer.
 */
static void launch_rank_tick(struct launch_rank *k, int64_t now)
{
    uint32_t d = clock_dilation(k->sh);

    k->patience += d > DILATION_CONTROL ? (now - k->wall) * DILATION_CONTROL / d : now - k->wall;
    k->wall = now;
    if (k->comm)
        comm_tick(k->comm, k->patience);
}

static int comm_check(struct launch_rank *k)
{
    if (k->comm && comm_state(k->comm) == COMM_FAILED)
        return rank_fail(k, comm_error(k->comm), NULL);
    return 0;
}

/* Waits for the next command, making progress meanwhile. */
static int next_command(struct launch_rank *k, struct msg *m)
{
    int64_t since = clock_mono_ns();

    for (;;) {
        int rc = rank_take(k, m);
        if (rc)
            return rc;
        int64_t now = clock_mono_ns();
        launch_rank_tick(k, now);
        int busy = k->comm ? comm_progress(k->comm) : 0;
        if (comm_check(k))
            return -ECANCELED;
        struct pollfd p = {.fd = k->fd, .events = POLLIN};
        /* Others may still need this rank's part of a protocol; comm_progress() sleeps when idle.
         */
        bool serves = k->init.algos & COLL_PROTOCOLS;
        int ms = now - since < WAIT_LONG_NS ? !serves : serves ? 1 : 25;
        poll(&p, 1, busy > 0 ? 0 : ms);
    }
}

/* Handles a message during an operation: STOP or LIMIT, which end the run early. */
static int take_stop(struct launch_rank *k, const struct msg *m)
{
    struct msg_progress p = {k->op, k->op};

    if (m->type == MSG_LIMIT && !msg_read(m, &p, sizeof(p))) {
        k->limit = p.done;
        k->stop_after = 0;
        return 0;
    }
    if (m->type != MSG_STOP || !k->op)
        return rank_fail(k, "the launcher sent a command during an operation", NULL);
    k->stop_after = k->op + 1;
    return msg_send(k->fd, MSG_PROGRESS, &p, sizeof(p)) ? rank_fail(k, "the launcher is gone", NULL)
                                                        : 0;
}

int rank_wait_limit(struct launch_rank *k)
{
    while (k->stop_after) {
        struct pollfd p = {.fd = k->fd, .events = POLLIN};
        int busy = comm_progress(k->comm);

        k->look_at = 0;
        if (rank_look(k) || comm_check(k))
            return -ECANCELED;
        if (k->stop_after)
            poll(&p, 1, busy > 0 ? 0 : 1);
    }
    return 0;
}

int rank_look(struct launch_rank *k)
{
    struct msg m;
    int64_t now = clock_mono_ns();

    if (now < k->look_at)
        return 0;
    k->look_at = now + LOOK_NS;
    launch_rank_tick(k, now);
    int rc = rank_take(k, &m);
    return rc > 0 ? take_stop(k, &m) : rc;
}

int rank_answer(struct launch_rank *k, const struct msg_done *what, const int64_t *ends)
{
    const char *why = comm_fell_back(k->comm);
    size_t len = sizeof(*what) + what->ops * sizeof(*ends);
    struct msg_done *d = malloc(len);
    int rc;

    if (!d)
        return rank_fail(k, "cannot allocate an answer", NULL);
    *d = *what;
    d->last_trees = comm_last_trees(k->comm, d->last_tree);
    snprintf(d->fell_back, sizeof(d->fell_back), "%s", why ? why : "");
    if (what->ops)
        memcpy(d + 1, ends, what->ops * sizeof(*ends));
    rc = msg_send(k->fd, MSG_DONE, d, len);
    free(d);
    return rc ? rank_fail(k, "the launcher is gone", NULL) : 0;
}

/* The launcher asks once all ranks are connected: before, a rank may not know yet that another was
 * granted less. */
static int send_granted(struct launch_rank *k)
{
    struct msg_done d = {0};

    comm_granted(k->comm, &d.granted);
    return rank_answer(k, &d, NULL);
}

static int rank_serve(struct launch_rank *k)
{
    struct msg m;

    for (;;) {
        if (next_command(k, &m) < 0)
            return -ECANCELED;
        int rc;
        switch (m.type) {
        case MSG_PREPARE:
            rc = rank_prepare(k, &m);
            break;
        case MSG_RUN:
            rc = rank_run(k, &m);
            break;
        case MSG_RECORD:
            rc = rank_record(k, &m);
            break;
        case MSG_CHECK:
            rc = rank_check(k, &m);
            break;
        case MSG_ERROR:
            rc = rank_error(k);
            break;
        case MSG_GRANTED:
            rc = send_granted(k);
            break;
        case MSG_STOP: /* arrived after the last operation */
        case MSG_LIMIT:
            rc = 0;
            break;
        case MSG_QUIT:
            return 0;
        default:
            rc = rank_fail(k, "unexpected command", NULL);
        }
        if (rc)
            return rc;
    }
}

/* ---- start and end ---- */

/* Waits for a message before there is a communicator. */
static int rank_receive(struct launch_rank *k, struct msg *m)
{
    while (rank_take(k, m) == 0) {
        struct pollfd p = {.fd = k->fd, .events = POLLIN};
        poll(&p, 1, 100);
    }
    return k->failed ? -ECANCELED : 0;
}

static int receive_init(struct launch_rank *k)
{
    struct msg m;

    if (rank_receive(k, &m))
        return -ECANCELED;
    if (m.type != MSG_INIT || msg_read_init(&m, &k->init, k->host)) {
        k->init.rank = 0; /* report_failure() uses it as an index */
        return rank_fail(k, "malformed INIT", NULL);
    }
    return 0;
}

static int set_up_fabric(struct launch_rank *k)
{
    char why[PROTO_CONF_TEXT], cut[MSG_TEXT - 8];

    if (!k->fab)
        return rank_fail(k, "cannot load the fabric's conf", NULL);
    if (!proto_setup(k->fab, why))
        return 0;
    snprintf(cut, sizeof(cut), "%.*s", (int)sizeof(cut) - 1, why);
    return rank_fail(k, cut, NULL);
}

static int open_fabric(struct launch_rank *k)
{
    if (rundir_open(&k->rd, NULL, NULL, false))
        return rank_fail(k, "cannot open the run directory", getenv("TRIB_RUN"));
    k->sh = k->rd.sh;
    clock_set_policy(clock_dilation(k->sh)); /* the HCA's thread will inherit it */
    k->fab = rundir_fabric(&k->rd);
    return set_up_fabric(k);
}

/* For a rank outside: ports to the outside force dilation 1, so the rank uses a clock of its own.
 */
static int receive_fabric(struct launch_rank *k)
{
    struct msg m;
    char *text;

    k->own = calloc(1, sizeof(*k->own));
    if (!k->own)
        return rank_fail(k, "out of memory", NULL);
    clock_set_dilation(&k->own->clock, 1);
    k->own->sh.clock = &k->own->clock;
    k->sh = &k->own->sh;
    if (rank_receive(k, &m))
        return -ECANCELED;
    if (m.type != MSG_FABRIC)
        return rank_fail(k, "malformed FABRIC", NULL);
    text = strndup((const char *)m.body, m.len);
    if (text)
        k->fab = fabric_load_string(text, "fabric.conf", NULL);
    free(text);
    return set_up_fabric(k);
}

/* Receives the schedule's text from the launcher, which has verified it: the file may have changed.
 */
static int receive_schedule(struct launch_rank *k)
{
    struct fab_errors *errs = calloc(1, sizeof(*errs));
    char *text = calloc(1, k->init.schedule + 1ul);
    struct msg m;
    uint32_t at = 0;

    while (errs && text && at < k->init.schedule && !rank_receive(k, &m) &&
           m.type == MSG_SCHEDULE && m.len <= k->init.schedule - at) {
        memcpy(text + at, m.body, m.len);
        at += m.len;
    }
    if (errs && text && at == k->init.schedule)
        k->file = sched_file_parse(text, "schedule", errs);
    free(text);
    free(errs);
    return k->file ? 0 : rank_fail(k, "malformed SCHEDULE", NULL);
}

static int open_device(struct launch_rank *k)
{
    int n = 0;
    struct ibv_device **list = ibv_get_device_list(&n);
    if (!list || n < 1)
        return k->elsewhere ? rank_fail(k, "found no RDMA device", NULL)
                            : rank_fail(k, "found no RDMA device, expected the emulated one",
                                        "is libtribverbs.so preloaded?");
    for (; (int)k->n_ctx < n && k->n_ctx < FAB_MAX_HOST_PORTS; k->n_ctx++) {
        k->ctx[k->n_ctx] = ibv_open_device(list[k->n_ctx]);
        if (!k->ctx[k->n_ctx])
            return rank_fail(k, "cannot open an RDMA device", strerror(errno));
    }
    ibv_free_device_list(list);
    return 0;
}

static int rank_allocate(struct launch_rank *k)
{
    k->buf_bytes = k->init.buf_bytes;
    for (int i = 0; i < 2; i++) {
        char err[DEVICE_TEXT] = "";

        k->buf[i] = buffer_alloc(&k->memory, k->buf_bytes, err);
        if (!k->buf[i])
            return rank_fail(k, "cannot allocate buffers", err);
        int rc = comm_register(k->comm, k->buf[i], k->buf_bytes);
        if (rc)
            return rank_fail(k, "cannot register buffers", strerror(-rc));
    }
    if (pattern_init(&k->val))
        return rank_fail(k, "cannot allocate buffers", NULL);
    k->val.device = k->memory.device;
    return 0;
}

static int64_t now_ps(void *ctx)
{
    return clock_fabric_ps(((const struct launch_rank *)ctx)->sh);
}

static int connect_all(struct launch_rank *k)
{
    struct comm_cfg cfg = {.n_ctx = k->n_ctx,
                           .ctx = k->ctx,
                           .fab = k->fab,
                           .rank = k->init.rank,
                           .nranks = k->init.nranks,
                           .host_of_rank = k->host,
                           .group = k->init.group,
                           .key = k->init.key,
                           .n_trees = k->init.n_trees,
                           .window = k->init.window,
                           .algos = k->init.algos,
                           .n_policy = k->init.n_policy,
                           .now_ps = now_ps,
                           .now_ctx = k};
    uint8_t blob[COMM_BLOB] = {0};
    struct msg_done ready = {0};
    char path[COMM_TEXT];
    char err[COMM_TEXT] = "";
    struct msg m;

    if (buffer_open(&k->memory, k->init.gpu, err))
        return rank_fail(k, err, NULL);
    if (rank_timeline_open(k))
        return -ECANCELED;
    cfg.watch = k->timeline ? timeline_watch(k->timeline, k->init.rank) : NULL;
    cfg.device = k->memory.device;
    memcpy(cfg.tree, k->init.tree, sizeof(cfg.tree));
    for (unsigned i = 0; i < cfg.n_policy; i++)
        cfg.policy[i] = (enum coll_algo)k->init.policy[i];
    if (comm_create(&k->comm, &cfg, blob, err)) {
        k->comm = NULL;
        return rank_fail(k, err, NULL);
    }
    if (rank_allocate(k))
        return -ECANCELED;
    comm_gpudirect(k->comm, path);
    if (*path)
        snprintf(ready.memory, sizeof(ready.memory), "%s, %s", device_name(k->memory.device), path);
    if (msg_send(k->fd, MSG_HELLO, blob, sizeof(blob)))
        return rank_fail(k, "the launcher is gone", NULL);
    if (next_command(k, &m) < 0)
        return -ECANCELED;
    if (m.type != MSG_CONNECT || m.len != k->init.nranks * COMM_BLOB)
        return rank_fail(k, "malformed CONNECT", NULL);
    if (comm_connect(k->comm, m.body, err))
        return rank_fail(k, err, NULL);
    while (comm_state(k->comm) == COMM_CONNECTING) {
        comm_progress(k->comm);
        if (rank_look(k))
            return -ECANCELED;
    }
    return comm_check(k) ? -ECANCELED : rank_answer(k, &ready, NULL);
}

/* Leaves the group, within 2 s, so that its aggregation slots are free for the next job. */
static void rank_leave(struct launch_rank *k)
{
    int64_t until = clock_mono_ns() + CLOSE_NS;

    if (!k->comm)
        return;
    if (k->failed)
        comm_abort(k->comm, k->text);
    comm_close(k->comm);
    while (!comm_closed(k->comm) && clock_mono_ns() < until) {
        comm_progress(k->comm);
        launch_rank_tick(k, clock_mono_ns());
    }
    comm_destroy(k->comm);
    k->comm = NULL;
}

/* Reports the failure and waits for the launcher's verdict on its cause. */
static void report_failure(struct launch_rank *k)
{
    char own[MSG_TEXT];
    int64_t until = clock_mono_ns() + CLOSE_NS;
    struct msg m;

    memcpy(own, k->text, sizeof(own));
    if (!k->aborted && !msg_send(k->fd, MSG_FAIL, own, strlen(own) + 1)) {
        while (!k->aborted && clock_mono_ns() < until) {
            struct pollfd p = {.fd = k->fd, .events = POLLIN};
            poll(&p, 1, 100);
            rank_take(k, &m);
        }
    }
    uint16_t at = k->host[k->init.rank];
    const char *host = k->fab && at < k->fab->n_hosts ? k->fab->nodes[k->fab->hosts[at]].name
                                                      : getenv("TRIB_HOST");
    fprintf(stderr, "trib-perf: rank %u (%s): %s\n", k->init.rank, host ? host : "?", k->text);
}

int rank_main(int fd, bool elsewhere)
{
    struct launch_rank *k = calloc(1, sizeof(*k));

    if (!k)
        return 1;
    k->fd = fd;
    k->elsewhere = elsewhere;
    k->wall = clock_mono_ns();
    int rc = receive_init(k);
    if (!rc)
        rc = elsewhere ? receive_fabric(k) : open_fabric(k);
    if (!rc && k->init.schedule)
        rc = receive_schedule(k);
    if (!rc)
        rc = open_device(k);
    if (!rc)
        rc = connect_all(k);
    if (!rc)
        rc = rank_serve(k);
    if (rc)
        report_failure(k);
    rank_leave(k);
    while (k->n_ctx)
        ibv_close_device(k->ctx[--k->n_ctx]);
    for (int i = 0; i < 2; i++)
        buffer_free(&k->memory, k->buf[i], k->buf_bytes);
    buffer_close(&k->memory);
    pattern_free(&k->val);
    timeline_destroy(k->timeline);
    msg_free(&k->in);
    sched_file_free(k->file);
    rundir_close(&k->rd);
    if (k->fab)
        fabric_free(k->fab);
    free(k->own);
    free(k);
    return rc ? 1 : 0;
}
