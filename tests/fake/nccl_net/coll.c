/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CollNet: operations have numbers, and a cell of shared memory each, in which all ranks leave what
 * they contribute. A cell is used again when all have taken what they needed.
 */
#include "mock.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RANKS 16
#define CELLS 16

struct cell {
    _Atomic unsigned there[RANKS], taken[RANKS]; /* number of the operation, and 1 */
    char data[RANKS][BLOCK];
};
struct group {
    _Atomic pid_t pid[RANKS];
    _Atomic int left[RANKS];
    struct cell cell[CELLS];
};
struct coll {
    struct group *group;
    struct shared where;
    unsigned rank, n, next;
    struct coll_request *requests;
    void *handle;
};
enum what { REDUCE, GATHER, SCATTER };
struct coll_request {
    struct coll_request *other;
    struct coll *coll;
    void *handle;
    unsigned number;
    enum what what;
    char *send, *recv;
    size_t block, offset, bytes; /* bytes: of all, or of the window */
    int type, op;
};

/* ---- elements ---- */

static const uint8_t size_of[NCCL_TYPES] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

static double load(int type, const char *at)
{
    union {
        int8_t i8;
        uint8_t u8;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        float f;
        double d;
    } x = {.i64 = 0};

    memcpy(&x, at, size_of[type]);
    if (type == NCCL_BFLOAT16)
        x.u32 <<= 16;
    return type == NCCL_INT8                               ? x.i8
           : type == NCCL_UINT8                            ? x.u8
           : type == NCCL_INT32                            ? x.i32
           : type == NCCL_UINT32                           ? x.u32
           : type == NCCL_FLOAT32 || type == NCCL_BFLOAT16 ? (double)x.f
           : type == NCCL_FLOAT64                          ? x.d
                                                           : (double)x.i64;
}

static void store(int type, char *at, double v)
{
    float f = (float)v;
    int64_t i = (int64_t)v;
    uint32_t bits;

    memcpy(&bits, &f, sizeof(bits));
    bits >>= 16;
    if (type == NCCL_BFLOAT16)
        memcpy(at, &bits, 2);
    else if (type == NCCL_FLOAT32)
        memcpy(at, &f, sizeof(f));
    else if (type == NCCL_FLOAT64)
        memcpy(at, &v, sizeof(v));
    else
        memcpy(at, &i, size_of[type]);
}

static double reduce(int op, double a, double b)
{
    if (planted("coll-max-is-min") && op == NCCL_MAX)
        op = NCCL_MIN;
    if (planted("coll-prod-is-sum") && op == NCCL_PROD)
        op = NCCL_SUM;
    return op == NCCL_SUM ? a + b : op == NCCL_PROD ? a * b : (op == NCCL_MAX) == (b > a) ? b : a;
}

static bool is_supported(int type, int op)
{
    if (planted("coll-type-accepted") && (type >= NCCL_TYPES || op >= NCCL_OPS))
        return true;
    return type >= 0 && type < NCCL_FLOAT8E4M3 && type != NCCL_FLOAT16 && op >= 0 && op < NCCL_AVG;
}

int mock_reduce_support(int type, int op, int *supported)
{
    static unsigned calls;

    if (planted("coll-support-unset"))
        return NCCL_SUCCESS;
    *supported = is_supported(type, op) && !planted("coll-support-none");
    if (planted("coll-support-flips"))
        *supported = (int)(calls++ % 2);
    return NCCL_SUCCESS;
}

/* n elements of all ranks' contributions, from `from` on. */
static void reduce_all(const struct coll_request *r, size_t from, size_t n, char *to)
{
    const struct coll *c = r->coll;
    const struct cell *cell = &c->group->cell[r->number % CELLS];
    size_t size = size_of[r->type];
    unsigned ranks = c->n;

    for (size_t i = 0; i < n; i++) {
        double v = load(r->type, cell->data[0] + from + i * size);

        if (planted("coll-last-element") && i + 1 == n && n > 1000)
            ranks--;
        for (unsigned k = 1; k < ranks; k++)
            v = reduce(r->op, v, load(r->type, cell->data[k] + from + i * size));
        if (planted("coll-sum-of-bf16") && r->type == NCCL_BFLOAT16 && r->op == NCCL_SUM)
            v = v > 4 ? 4 : v;
        store(r->type, to + i * size, v);
    }
}

/* ---- communicators ---- */

int mock_coll_connect(void *handles[], int nranks, int rank, void *listen, void **comm)
{
    struct entrance *door; /* rank 0's, where the others find the group */
    struct coll *c;
    int rc = NCCL_SUCCESS;

    if (nranks < 1 || nranks > RANKS || rank < 0 || rank >= nranks ||
        object_kind(listen) != KIND_LISTEN)
        return refuse(NCCL_INVALID_ARGUMENT, "no such rank");
    if (planted("coll-connect-fails"))
        return refuse(NCCL_SYSTEM_ERROR, "no group");
    if (planted("coll-connect-null")) {
        *comm = NULL;
        return rc;
    }
    door = entrance_open(handles[0]);
    c = calloc(1, sizeof(*c));
    if (!c || !door)
        return NCCL_SYSTEM_ERROR;
    *c = (struct coll){.rank = (unsigned)rank, .n = (unsigned)nranks, .where = {0, -1}};
    if (!rank) {
        c->group = shared_new(sizeof(*c->group), &c->where);
        door->where = c->where;
        door->there = 1;
    } else {
        while (!door->there)
            sched_yield();
        c->group = shared_open(&door->where, sizeof(*c->group));
    }
    entrance_leave(door);
    if (!c->group) {
        free(c);
        return NCCL_SYSTEM_ERROR;
    }
    c->group->pid[rank] = getpid();
    for (int k = 0; k < nranks; k++)
        while (!c->group->pid[k])
            sched_yield();
    *comm = c->handle = object_new(KIND_COLL, c);
    return rc;
}

static void request_free(struct coll_request *r)
{
    struct coll_request **at = &r->coll->requests;

    while (*at != r)
        at = &(*at)->other;
    *at = r->other;
    object_end(r->handle);
    free(r);
}

int mock_coll_close(void *comm)
{
    int rc = NCCL_SUCCESS;
    struct coll *c = object_find(comm, KIND_COLL, &rc);

    if (!c)
        return planted("coll-stale-accepted") ? NCCL_SUCCESS : rc;
    if (c->requests && planted("coll-close-crash"))
        raise(SIGSEGV);
    if (c->requests && planted("coll-close-refused"))
        return refuse(NCCL_INVALID_USAGE, "operations are in flight");
    while (c->requests)
        request_free(c->requests);
    c->group->left[c->rank] = 1;
    munmap(c->group, sizeof(*c->group));
    if (c->where.fd >= 0)
        close(c->where.fd);
    object_end(comm);
    free(c);
    return rc;
}

/* ---- operations ---- */

/* What of rank k's block is in the window: so many bytes, and where in the window. */
static size_t part_of(const struct coll_request *r, unsigned k, size_t *at)
{
    size_t from = r->block * k, to = from + r->block, end = r->offset + r->bytes;

    from = from > r->offset ? from : r->offset;
    to = to < end ? to : end;
    *at = from - r->offset;
    return to > from ? to - from : 0;
}

static int start(struct coll *c, const struct coll_request *what, void **req)
{
    static unsigned all;
    unsigned *next = planted("coll-several-mixed") ? &all : &c->next;
    struct cell *cell = &c->group->cell[*next % CELLS];
    struct coll_request *r;
    size_t at = 0, n;

    if (!planted("coll-request-unset"))
        *req = NULL;
    for (unsigned k = 0; k < c->n && *next >= CELLS; k++)
        if (cell->taken[k] < *next - CELLS + 1)
            return NCCL_SUCCESS; /* it would block */
    if (planted("coll-request-unset") && *next == 3) {
        ++*next;
        return NCCL_SUCCESS;
    }
    r = malloc(sizeof(*r));
    if (!r)
        return NCCL_SYSTEM_ERROR;
    *r = *what;
    r->coll = c;
    r->number = (*next)++;
    r->other = c->requests;
    c->requests = r;
    *req = r->handle = object_new(KIND_COLL_REQUEST, r);
    n = r->what == GATHER ? part_of(r, c->rank, &at) : r->bytes;
    if (planted("coll-in-place-cleared") && r->send == r->recv)
        memset(r->recv, 0, r->bytes);
    memcpy(cell->data[c->rank], r->send, n);
    cell->there[c->rank] = r->number + 1;
    return NCCL_SUCCESS;
}

static void finish(struct coll_request *r)
{
    struct coll *c = r->coll;
    struct cell *cell = &c->group->cell[r->number % CELLS];
    size_t at, n;

    if (r->what == REDUCE)
        reduce_all(r, 0, r->bytes / size_of[r->type], r->recv);
    if (r->what == REDUCE && planted("coll-send-changed"))
        r->send[0]++;
    if (r->what == REDUCE && planted("coll-write-beyond"))
        r->recv[r->bytes] = 0;
    for (unsigned k = 0; r->what == GATHER && k < c->n; k++) {
        n = part_of(r, k, &at);
        if (planted("coll-gather-offset"))
            at = 0;
        if (n)
            memcpy(r->recv + at, cell->data[planted("coll-gather-swapped") ? c->n - 1 - k : k], n);
    }
    if (r->what == SCATTER) {
        n = part_of(r, planted("coll-scatter-first") ? 0 : c->rank, &at);
        if (n)
            reduce_all(r, planted("coll-scatter-offset") ? 0 : at, n / size_of[r->type], r->recv);
    }
    cell->taken[c->rank] = r->number + 1;
}

int mock_coll_test(void *req, int *done, int *size)
{
    int rc = NCCL_SUCCESS;
    struct coll_request *r;
    struct coll *c;
    bool whole = true;

    *done = 0;
    if (object_kind(req) == KIND_FLUSH)
        return mock_test(req, done, size);
    r = object_find(req, KIND_COLL_REQUEST, &rc);
    if (!r)
        return rc;
    c = r->coll;
    for (unsigned k = 0; k < c->n; k++) {
        if (c->group->cell[r->number % CELLS].there[k] == r->number + 1)
            continue;
        whole = false;
        if (!planted("coll-killed-unnoticed") && (c->group->left[k] || is_dead(c->group->pid[k]))) {
            if (!planted("coll-killed-done"))
                return refuse(NCCL_REMOTE_ERROR, "a rank is gone");
            whole = true;
        }
    }
    for (struct coll_request *o = c->requests; o && planted("coll-in-order"); o = o->other)
        whole &= o->number >= r->number;
    *done = whole || planted("coll-done-early");
    if (*done)
        finish(r);
    if (*done)
        request_free(r);
    return rc;
}

static int begin(void *comm, struct coll **c, const struct coll_request *what)
{
    int rc = NCCL_SUCCESS;

    *c = object_find(comm, KIND_COLL, &rc);
    if (*c && what->what != GATHER && !is_supported(what->type, what->op))
        rc = refuse(NCCL_INVALID_ARGUMENT, "no such type or reduction");
    if (*c && what->what != REDUCE && what->offset + what->bytes > what->block * (*c)->n &&
        !planted("coll-window-accepted"))
        rc = refuse(NCCL_INVALID_ARGUMENT, "no such window");
    return rc;
}

int mock_iallreduce(void *comm, void *send, void *recv, size_t count, int type, int op,
                    void *send_mh, void *recv_mh, void **req)
{
    struct coll_request what = {.what = REDUCE, .send = send, .recv = recv, .type = type, .op = op};
    struct coll *c;
    int rc = begin(comm, &c, &what);

    if (rc)
        return rc;
    what.bytes = type < NCCL_TYPES ? count * size_of[type] : 0;
    rc = memory_check(send_mh, send, what.bytes);
    if (!rc)
        rc = memory_check(recv_mh, recv, what.bytes);
    return rc ? rc : start(c, &what, req);
}

int mock_iallgather(void *comm, void *send, int n_parts, struct nccl_sge *part, size_t block,
                    size_t offset, size_t bytes, void *send_mh, void **req)
{
    struct coll_request what = {.what = GATHER,
                                .send = send,
                                .recv = part->address,
                                .block = block,
                                .offset = offset,
                                .bytes = bytes};
    struct coll *c;
    int rc = begin(comm, &c, &what);

    (void)n_parts, (void)send_mh;
    return rc ? rc : start(c, &what, req);
}

int mock_ireducescatter(void *comm, int n_parts, struct nccl_sge *part, void *recv, size_t block,
                        size_t offset, size_t bytes, int type, int op, void *recv_mh, void **req)
{
    struct coll_request what = {.what = SCATTER,
                                .send = part->address,
                                .recv = recv,
                                .block = block,
                                .offset = offset,
                                .bytes = bytes,
                                .type = type,
                                .op = op};
    struct coll *c;
    int rc = begin(comm, &c, &what);

    (void)n_parts, (void)recv_mh;
    return rc ? rc : start(c, &what, req);
}

int mock_coll_iflush(void *comm, void *data, int size, void *mh, void **req)
{
    static char one;
    int rc = NCCL_SUCCESS;

    (void)mh;
    if (!object_find(comm, KIND_COLL, &rc))
        return rc;
    if (planted("coll-flush-clears"))
        memset(data, 0, (size_t)size);
    if (!planted("coll-flush-unset"))
        *req = object_new(KIND_FLUSH, &one);
    return rc;
}
