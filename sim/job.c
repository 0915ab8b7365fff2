#include "sim/job.h"

#include "sim/oracle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Retries of control messages run on this clock, in fabric time. */
#define TICK_PS (10 * PS_PER_MS)

struct member {
    struct comm *comm;
    struct coll_req *req;
    char *mem; /* input and output in one registered block */
    char *in, *out;
    int64_t start_ps, end_ps;
    bool started, ended;
    int rc;
};

struct job {
    struct job_cfg cfg;
    struct member *mem;
    size_t bytes; /* of each buffer */
    int64_t next_tick;
};

struct comm *job_comm(struct job *j, unsigned rank)
{
    return j->mem[rank].comm;
}

static void progress(struct job *j)
{
    for (unsigned r = world_awake(j->cfg.w, 0); r < j->cfg.nranks; r = world_awake(j->cfg.w, r + 1))
        if (j->mem[r].comm)
            comm_progress(j->mem[r].comm);
}

void job_drive(struct job *j, int64_t until_ps, bool (*until)(void *), void *ctx)
{
    struct world *w = j->cfg.w;

    while (!until(ctx) && world_now(w) < until_ps) {
        int64_t limit = j->next_tick < until_ps ? j->next_tick : until_ps;

        world_step(w, limit);
        if (world_now(w) >= j->next_tick) {
            j->next_tick = world_now(w) + TICK_PS;
            for (unsigned r = 0; r < j->cfg.nranks; r++)
                if (j->mem[r].comm) {
                    comm_tick(j->mem[r].comm, world_now(w) / PS_PER_NS);
                    comm_progress(j->mem[r].comm);
                }
        }
        progress(j);
    }
}

static bool all_connected(void *ctx)
{
    struct job *j = ctx;
    bool ready = true;

    for (unsigned r = 0; r < j->cfg.nranks; r++) {
        if (comm_state(j->mem[r].comm) == COMM_FAILED)
            return true;
        ready = ready && comm_state(j->mem[r].comm) == COMM_READY;
    }
    return ready;
}

static int connect_all(struct job *j, char *err)
{
    unsigned n = j->cfg.nranks;
    char *blobs = calloc(n, COMM_BLOB);
    int rc = blobs ? 0 : -ENOMEM;

    for (unsigned r = 0; !rc && r < n; r++) {
        struct comm_cfg cc = {.ctx = world_context(j->cfg.w, r, 0),
                              .fab = j->cfg.fab,
                              .rank = r,
                              .nranks = n,
                              .host_of_rank = j->cfg.host_of_rank,
                              .group = j->cfg.group,
                              .key = j->cfg.key,
                              .tree = j->cfg.tree,
                              .window = j->cfg.window,
                              .algos = j->cfg.algos};

        rc = comm_create(&j->mem[r].comm, &cc, blobs + r * COMM_BLOB, err);
    }
    for (unsigned r = 0; !rc && r < n; r++)
        rc = comm_connect(j->mem[r].comm, blobs, err);
    free(blobs);
    return rc;
}

int job_create(struct job **out, const struct job_cfg *cfg, char *err)
{
    struct job *j = calloc(1, sizeof(*j));
    int rc = -ENOMEM;

    err[0] = '\0';
    if (j)
        j->mem = calloc(cfg->nranks, sizeof(*j->mem));
    if (!j || !j->mem) {
        free(j);
        return rc;
    }
    j->cfg = *cfg;
    j->next_tick = world_now(cfg->w) + TICK_PS;
    rc = connect_all(j, err);
    if (!rc) {
        job_drive(j, world_now(cfg->w) + cfg->limit_ps, all_connected, j);
        for (unsigned r = 0; !rc && r < cfg->nranks; r++) {
            enum comm_state s = comm_state(j->mem[r].comm);

            if (s != COMM_READY) {
                rc = s == COMM_FAILED ? -ECONNREFUSED : -ETIME;
                snprintf(err, COMM_TEXT, "rank %u: %s", r,
                         s == COMM_FAILED ? comm_error(j->mem[r].comm) : "still connecting");
            }
        }
    }
    *out = j;
    if (rc) {
        job_destroy(j);
        *out = NULL;
    }
    return rc;
}

/* ---- one operation
 * ------------------------------------------------------------------------------------ */

/* Made at the first operation, registered once: later operations must fit into them. */
static int buffers(struct job *j, size_t bytes)
{
    if (j->bytes)
        return j->bytes >= bytes ? 0 : -EFBIG;
    if (bytes < j->cfg.buffer_bytes)
        bytes = j->cfg.buffer_bytes;
    for (unsigned r = 0; r < j->cfg.nranks; r++) {
        struct member *m = &j->mem[r];
        char *mem = malloc(2 * bytes);

        if (!mem)
            return -ENOMEM;
        m->mem = mem;
        m->in = mem;
        m->out = mem + bytes;
        if (comm_register(m->comm, mem, 2 * bytes))
            return -ENOMEM;
    }
    j->bytes = bytes;
    return 0;
}

static bool op_over(void *ctx)
{
    struct job *j = ctx;
    bool over = true;

    for (unsigned r = 0; r < j->cfg.nranks; r++) {
        struct member *m = &j->mem[r];

        if (m->started && !m->ended && m->req) {
            int rc = coll_test(m->req);

            if (rc) {
                m->ended = true;
                m->rc = rc < 0 ? rc : 0;
                m->end_ps = world_now(j->cfg.w);
            }
        }
        over = over && m->ended;
    }
    return over;
}

static void start_rank(struct job *j, const struct job_op *op, unsigned r, struct job_result *res)
{
    struct member *m = &j->mem[r];
    struct coll_args a = {.kind = COLL_ALLREDUCE,
                          .algo = op->algo,
                          .send = op->in_place ? m->out : m->in,
                          .recv = m->out,
                          .count = op->count,
                          .type = op->type,
                          .op = op->op};
    char err[COMM_TEXT] = "";

    m->started = true;
    m->rc = coll_start(m->comm, &a, &m->req, err);
    if (m->rc) {
        m->ended = true;
        m->end_ps = world_now(j->cfg.w);
        snprintf(res->text, sizeof(res->text), "rank %u: %s", r, err);
        return;
    }
    comm_progress(m->comm);
}

static bool never(void *ctx)
{
    (void)ctx;
    return false;
}

/* Ranks start in order of their random times, the world running in between. */
static void start_all(struct job *j, const struct job_op *op, struct job_result *res)
{
    uint64_t s = op->seed ^ 0xa5a5a5a5u;
    int64_t t0 = world_now(j->cfg.w);
    unsigned n = j->cfg.nranks;

    for (unsigned r = 0; r < n; r++) {
        struct member *m = &j->mem[r];

        m->start_ps = t0 + (op->skew_ps ? (int64_t)(oracle_random(&s) % (uint64_t)op->skew_ps) : 0);
        m->started = m->ended = false;
        m->req = NULL;
        m->rc = 0;
    }
    for (unsigned k = 0; k < n; k++) {
        unsigned first = n;

        for (unsigned r = 0; r < n; r++)
            if (!j->mem[r].started && (first == n || j->mem[r].start_ps < j->mem[first].start_ps))
                first = r;
        job_drive(j, j->mem[first].start_ps, never, NULL);
        start_rank(j, op, first, res);
    }
}

static int expected(struct job *j, const struct job_op *op, const void *const *in, void *out)
{
    struct fab_members m = {0};
    unsigned rph = 1;

    if (op->algo != ALGO_SHARP) {
        oracle_plain(op->type, op->op, op->count, j->cfg.nranks, in, out);
        return 0;
    }
    for (unsigned r = 0, run = 0; r < j->cfg.nranks; r++) {
        run = r && j->cfg.host_of_rank[r] == j->cfg.host_of_rank[r - 1] ? run + 1 : 1;
        rph = run > rph ? run : rph;
    }
    m.ranks_per_host = rph;
    for (unsigned r = 0, run = 0; r < j->cfg.nranks; r++) {
        run = r && j->cfg.host_of_rank[r] == j->cfg.host_of_rank[r - 1] ? run + 1 : 0;
        fab_members_add(&m, j->cfg.host_of_rank[r] * rph + run);
    }
    return oracle_tree(j->cfg.fab, &j->cfg.fab->trees[j->cfg.tree], &m, op->type, op->op, op->count,
                       in, out);
}

static int check(struct job *j, const struct job_op *op, const void *const *in,
                 struct job_result *res)
{
    size_t bytes = op->count * dtype_size(op->type);
    void *want = malloc(bytes + 1);
    int64_t first = INT64_MAX, last = 0;
    int rc = want ? expected(j, op, in, want) : -ENOMEM;

    for (unsigned r = 0; !rc && r < j->cfg.nranks; r++) {
        struct member *m = &j->mem[r];

        first = m->start_ps < first ? m->start_ps : first;
        last = m->end_ps > last ? m->end_ps : last;
        if (!m->ended) {
            snprintf(res->text, sizeof(res->text), "rank %u has not finished", r);
            rc = -ETIME;
        } else if (m->rc) {
            res->failed_ranks++;
            if (!res->text[0])
                snprintf(res->text, sizeof(res->text), "rank %u: %s", r, comm_error(m->comm));
        } else {
            res->wrong += oracle_wrong(m->out, want, op->type, op->count);
        }
    }
    res->time_ps = last - first;
    free(want);
    return rc;
}

int job_run(struct job *j, const struct job_op *op, struct job_result *res)
{
    unsigned n = j->cfg.nranks;
    size_t bytes = op->count * dtype_size(op->type);
    const void **in = calloc(n, sizeof(*in));
    char *copy = malloc(n * bytes + 1);
    int rc = in && copy ? buffers(j, bytes + 64) : -ENOMEM;

    memset(res, 0, sizeof(*res));
    for (unsigned r = 0; !rc && r < n; r++) {
        char *src = op->in_place ? j->mem[r].out : j->mem[r].in;

        in[r] = copy + r * bytes;
        oracle_fill(src, op->type, op->op, op->count, r, n, op->seed, op->algo != ALGO_SHARP);
        memcpy(copy + r * bytes, src, bytes);
        if (!op->in_place)
            memset(j->mem[r].out, 0xa5, bytes);
    }
    if (!rc) {
        start_all(j, op, res);
        job_drive(j, world_now(j->cfg.w) + j->cfg.limit_ps, op_over, j);
        rc = check(j, op, in, res);
    }
    for (unsigned r = 0; r < n; r++) {
        if (j->mem[r].req && j->mem[r].ended)
            coll_free(j->mem[r].req);
        j->mem[r].req = NULL;
    }
    free(copy);
    free(in);
    return rc;
}

/* ---- the end
 * -------------------------------------------------------------------------------------------- */

static bool all_closed(void *ctx)
{
    struct job *j = ctx;

    for (unsigned r = 0; r < j->cfg.nranks; r++)
        if (j->mem[r].comm && !comm_closed(j->mem[r].comm))
            return false;
    return true;
}

static bool ans_idle(void *ctx)
{
    struct job *j = ctx;

    return !world_busy_ans(j->cfg.w);
}

int job_destroy(struct job *j)
{
    int rc = 0;

    for (unsigned r = 0; r < j->cfg.nranks; r++)
        if (j->mem[r].comm)
            comm_close(j->mem[r].comm);
    job_drive(j, world_now(j->cfg.w) + j->cfg.limit_ps, all_closed, j);
    if (!all_closed(j))
        rc = -ETIME;
    for (unsigned r = 0; r < j->cfg.nranks; r++) {
        if (j->mem[r].comm)
            comm_destroy(j->mem[r].comm);
        j->mem[r].comm = NULL;
        free(j->mem[r].mem);
    }
    /* Aggregation nodes still part from each other; lost LEAVEs are repeated. */
    job_drive(j, world_now(j->cfg.w) + j->cfg.limit_ps, ans_idle, j);
    free(j->mem);
    free(j);
    return rc;
}
