/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations of the public interface. Buffers that the program has not registered are registered
 * while the operation runs.
 */
#include "base/assert.h"
#include "collective/sched.h"
#include "host/session/comm_priv.h"
#include "machine/shared.h"
#include "model/predict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REQUEST_MAGIC 0x7265712e74726962u /* freed requests have 0 */

struct trib_request {
    uint64_t magic;
    struct trib_comm *c;
    struct coll_req *req; /* NULL: the operation has ended */
    int status;           /* as of trib_test() */
    bool freed;           /* the program has freed it while it ran */
    enum coll_algo algo;
    struct coll_args args;
    struct borrowed *own[2];
    struct trib_request *next;
};

_Static_assert((int)TRIB_BFLOAT16 == (int)DT_BF16 && (int)TRIB_FLOAT8_E4M3 == (int)DT_FP8_E4M3 &&
                   (int)TRIB_INT32_LOC == (int)DT_INT32_LOC && (int)TRIB_INT16 == (int)DT_INT16 &&
                   (int)TRIB_ALL_TYPES == (int)DT_COUNT,
               "the public types are ours");
_Static_assert((int)TRIB_MAX == (int)OP_MAX && (int)TRIB_AVG == (int)OP_AVG &&
                   (int)TRIB_MAXLOC == (int)OP_MAXLOC && (int)TRIB_LXOR == (int)OP_LXOR &&
                   (int)OP_COUNT == (int)OP_LXOR + 1,
               "the public reductions are ours");

/* ---- which algorithm ---- */

static bool can(struct trib_comm *c, struct coll_args *a, enum coll_algo algo)
{
    a->algo = algo;
    return c->cfg.algos >> algo & 1 && comm_supports(c->comm, a);
}

static const struct session_choice *session_op_known(const struct trib_comm *c,
                                                     const struct coll_args *a)
{
    for (unsigned i = 0; i < CHOICES && i < c->n_choices; i++) {
        const struct session_choice *k = &c->choice[i];

        if (k->kind == a->kind && k->type == a->type && k->op == a->op && k->count == a->count)
            return k;
    }
    return NULL;
}

/* Chooses by the model. All ranks choose the same, because the model's input is the same at all. */
static bool choose_by_model(struct trib_comm *c, struct coll_args *a)
{
    const struct session_choice *k = session_op_known(c, a);
    struct coll_prediction p;
    enum coll_algo algo;
    char why[COLL_WHY];

    if (k) {
        a->algo = k->algo;
        return true;
    }
    if (coll_auto(c->session->fab, a, c->cfg.nranks, c->host, c->cfg.tree, c->cfg.n_trees,
                  c->cfg.window, c->cfg.algos, &algo, &p, why) ||
        !can(c, a, algo))
        return false;
    c->choice[c->n_choices++ % CHOICES] =
        (struct session_choice){a->kind, a->type, a->op, a->count, algo};
    return true;
}

/* Chooses the first algorithm of the policy that supports the operation, else a usual one that
 * does, else the first of the policy, which then refuses with the reason. */
static void session_op_choose(struct trib_comm *c, struct coll_args *a)
{
    if (c->automatic && a->kind != COLL_BARRIER && choose_by_model(c, a))
        return;
    for (unsigned i = 0; i < c->cfg.n_policy; i++)
        if (can(c, a, c->cfg.policy[i]))
            return;
    for (unsigned k = 0; k < ALGO_USUAL; k++)
        if (can(c, a, (enum coll_algo)k))
            return;
    T_ASSERT(c->cfg.n_policy, "a communicator has no algorithm to choose");
    a->algo = c->cfg.policy[0];
}

/* ---- memory ---- */

/* Registers a buffer for an operation. input: the operation only reads it, so read-only memory will
 * do. */
static int borrow(struct trib_comm *c, struct borrowed **own, const void *buf, size_t bytes,
                  bool input)
{
    void *p = (void *)(uintptr_t)buf;
    struct borrowed *b;
    size_t whole;
    int rc;

    if (!bytes || !buf)
        return 0;
    if (session_range_of(buf, bytes, &p, &whole)) {
        rc = comm_register(c->comm, p, whole);
        return rc == -EFAULT && input ? comm_register_input(c->comm, p, whole) : rc;
    }
    b = malloc(sizeof(*b));
    if (!b)
        return -ENOMEM;
    *b = (struct borrowed){p, bytes, false, c->borrowed};
    T_ASSERT(!*own, "an operation borrows for a buffer that it has borrowed already");
    c->borrowed = *own = b;
    return input ? comm_register_input(c->comm, p, bytes) : comm_register(c->comm, p, bytes);
}

/* Deregisters the buffers of ended operations. -EBUSY: another operation uses the range; the next
 * call tries again. -ENOENT: the range is in a larger one, which another operation or the program
 * deregisters. */
static void give_back(struct trib_comm *c, struct trib_request *o)
{
    for (unsigned i = 0; i < 2; i++)
        if (o->own[i])
            o->own[i]->ended = true;
    o->own[0] = o->own[1] = NULL;
    for (struct borrowed **at = &c->borrowed, *b = *at; b; b = *at) {
        if (!b->ended || comm_deregister(c->comm, b->buf, b->bytes) == -EBUSY) {
            at = &b->next;
        } else {
            *at = b->next;
            free(b);
        }
    }
}

/* Lengths of this rank's buffers, in bytes. */
static void extents(const struct trib_comm *c, const struct coll_args *a, size_t *in, size_t *out)
{
    size_t one = a->count * dtype_size(a->type), all = one * c->cfg.nranks;
    bool root = c->cfg.rank == a->root;

    *in = a->kind == COLL_REDUCE_SCATTER || a->kind == COLL_ALLTOALL ? all : one;
    *out = a->kind == COLL_ALLGATHER || a->kind == COLL_ALLTOALL ? all : one;
    switch (a->kind) {
    case COLL_REDUCE:
        *out = root ? one : 0;
        break;
    case COLL_BROADCAST:
        *in = root ? one : 0;
        *out = root ? 0 : one;
        break;
    case COLL_GATHER:
        *out = root ? all : 0;
        break;
    case COLL_SCATTER:
        *in = root ? all : 0;
        break;
    case COLL_BARRIER:
        *in = *out = 0;
        break;
    default:
        break;
    }
}

int session_comm_forget(struct trib_comm *c, const void *base, size_t bytes)
{
    int rc;

    pthread_mutex_lock(&c->lock);
    do /* the range may be registered twice: as an input, and for any use */
        rc = comm_deregister(c->comm, base, bytes);
    while (!rc);
    pthread_mutex_unlock(&c->lock);
    return rc == -ENOENT ? 0 : rc;
}

/* ---- life ---- */

static bool overlaps(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    return (uintptr_t)a < (uintptr_t)b + b_bytes && (uintptr_t)b < (uintptr_t)a + a_bytes;
}

static int unregistered(int rc, const void *buf, size_t bytes, char *err)
{
    return session_say(err, rc, "cannot register %zu bytes at %p: %s%s", bytes, buf, strerror(-rc),
                       rc == -EFAULT ? ", expected memory that is mapped, and writable for results"
                                     : "");
}

static int session_op_begin(struct trib_comm *c, struct trib_request *o, struct coll_args *a,
                            char *err)
{
    char why[COMM_TEXT] = "";
    size_t in, out;
    int rc;

    session_op_choose(c, a);
    extents(c, a, &in, &out);
    if ((in && !a->send) || (out && !a->recv))
        return session_say(err, -EINVAL, "%s: found no buffer, expected one of %zu bytes",
                           in && !a->send ? "send" : "recv", in && !a->send ? in : out);
    /* An operation in place may write its input, also at ranks without a result; a broadcast does
     * not. */
    rc = borrow(c, &o->own[0], a->send, in,
                a->kind == COLL_BROADCAST ||
                    (a->send != a->recv && !overlaps(a->send, in, a->recv, out)));
    if (rc)
        return unregistered(rc, a->send, in, err);
    rc = borrow(c, &o->own[1], a->recv, out, false);
    if (rc)
        return unregistered(rc, a->recv, out, err);
    rc = coll_start(c->comm, a, &o->req, why);
    if (rc)
        return session_say(err, rc, "%s", *why ? why : strerror(-rc));
    T_ASSERT(o->req, "an operation has started without a request");
    o->algo = a->algo;
    o->args = *a;
    return 0;
}

static int session_op_start(struct trib_comm *c, struct coll_args *a, struct trib_request **op,
                            char *err)
{
    struct trib_request *o;
    int rc;

    if (!op)
        return session_say(err, -EINVAL, "req: found no place for the request");
    if (!session_is_comm(c))
        return session_say(err, -EINVAL, SESSION_NO_COMM);
    if ((unsigned)a->type >= DT_COUNT || (coll_reduces(a->kind) && (unsigned)a->op >= OP_COUNT))
        return session_say(err, -EINVAL, "found type %d and reduction %d, expected public ones",
                           (int)a->type, (int)a->op);
    if (dtype_size(a->type) && a->count > SIZE_MAX / 16 / c->cfg.nranks)
        return session_say(err, -EINVAL, "found %zu elements, expected fewer", a->count);
    o = calloc(1, sizeof(*o));
    if (!o)
        return session_say(err, -ENOMEM, "out of memory");
    o->magic = REQUEST_MAGIC;
    o->c = c;
    pthread_mutex_lock(&c->lock);
    rc = session_op_begin(c, o, a, err);
    if (rc) {
        give_back(c, o);
        free(o);
    } else {
        o->next = c->ops;
        c->ops = o;
        *op = o;
    }
    pthread_mutex_unlock(&c->lock);
    return rc;
}

/* False for NULL and for freed requests. Destroying a communicator frees its requests. */
static bool is_request(const struct trib_request *o)
{
    return o && o->magic == REQUEST_MAGIC && session_is_comm(o->c);
}

static void request_end(struct trib_request *o)
{
    *(volatile uint64_t *)&o->magic = 0; /* volatile: the compiler must keep it before free() */
    free(o);
}

static void unlink_op(struct trib_request *o)
{
    struct trib_request **at = &o->c->ops;

    while (*at && *at != o)
        at = &(*at)->next;
    T_ASSERT(*at && !o->req, "a request goes that runs, or is not its communicator's");
    *at = o->next;
    request_end(o);
}

/* Ends the requests of operations that have ended. After a failure it waits until the reason is
 * known. */
static void session_op_settle(struct trib_comm *c)
{
    struct trib_request *next;

    if (comm_state(c->comm) == COMM_FAILED && !c->settled)
        return;
    for (struct trib_request *o = c->ops; o; o = next) {
        next = o->next;
        if (!o->req)
            continue;
        T_ASSERT(!o->status, "a request that has ended runs");
        o->status = coll_test(o->req);
        if (!o->status)
            continue;
        if (!coll_as_asked(o->req)) /* another algorithm replaced the chosen one */
            o->algo = comm_runs_by(c->comm, &o->args);
        coll_free(o->req);
        o->req = NULL;
        give_back(c, o);
        if (o->freed)
            unlink_op(o);
    }
}

int trib_test(struct trib_request *o)
{
    struct trib_comm *c;
    int status;

    if (!is_request(o))
        return o ? -EINVAL : 1;
    c = o->c;
    pthread_mutex_lock(&c->lock);
    if (o->req) {
        session_comm_drive(c);
        session_op_settle(c);
    }
    status = o->status;
    T_ASSERT(o->req || status, "a request has ended without a result");
    pthread_mutex_unlock(&c->lock);
    return status;
}

int trib_wait(struct trib_request *o)
{
    int rc;

    do
        rc = trib_test(o);
    while (!rc);
    return rc < 0 ? rc : 0;
}

int trib_wait_for(struct trib_request *o, double seconds)
{
    const int64_t begin = clock_mono_ns();
    int rc;

    do
        rc = trib_test(o);
    while (!rc && (double)(clock_mono_ns() - begin) < seconds * 1e9);
    return rc;
}

void trib_free(struct trib_request *o)
{
    struct trib_comm *c;

    if (!is_request(o) || o->freed)
        return;
    c = o->c;
    pthread_mutex_lock(&c->lock);
    if (o->req)
        o->freed = true;
    else
        unlink_op(o);
    pthread_mutex_unlock(&c->lock);
}

void trib_progress(struct trib_comm *c)
{
    if (!session_is_comm(c))
        return;
    pthread_mutex_lock(&c->lock);
    session_comm_drive(c);
    session_op_settle(c);
    pthread_mutex_unlock(&c->lock);
}

const char *trib_request_algo(const struct trib_request *o)
{
    return is_request(o) ? sched_algo_name(o->algo) : "";
}

void session_ops_free(struct trib_comm *c)
{
    for (struct trib_request *o = c->ops; o; o = c->ops) {
        c->ops = o->next;
        request_end(o);
    }
    for (struct borrowed *b = c->borrowed; b; b = c->borrowed) {
        c->borrowed = b->next;
        free(b);
    }
}

/* ---- the calls ---- */

static int session_op_call(struct trib_comm *c, enum coll_kind kind, const void *send, void *recv,
                           size_t count, enum trib_type type, int op, uint32_t root,
                           struct trib_request **req, char *err)
{
    struct coll_args a = {.kind = kind,
                          .send = send,
                          .recv = recv,
                          .count = count,
                          .type = (enum dtype)type,
                          .op = (enum redop)op,
                          .root = root};

    return session_op_start(c, &a, req, err);
}

int trib_all_reduce(struct trib_comm *c, const void *send, void *recv, size_t count,
                    enum trib_type type, int op, struct trib_request **req, char *err)
{
    return session_op_call(c, COLL_ALLREDUCE, send, recv, count, type, op, 0, req, err);
}

int trib_reduce(struct trib_comm *c, const void *send, void *recv, size_t count,
                enum trib_type type, int op, uint32_t root, struct trib_request **req, char *err)
{
    return session_op_call(c, COLL_REDUCE, send, recv, count, type, op, root, req, err);
}

int trib_reduce_scatter(struct trib_comm *c, const void *send, void *recv, size_t count,
                        enum trib_type type, int op, struct trib_request **req, char *err)
{
    return session_op_call(c, COLL_REDUCE_SCATTER, send, recv, count, type, op, 0, req, err);
}

int trib_broadcast(struct trib_comm *c, void *buf, size_t count, enum trib_type type, uint32_t root,
                   struct trib_request **req, char *err)
{
    return session_op_call(c, COLL_BROADCAST, buf, buf, count, type, 0, root, req, err);
}

int trib_all_gather(struct trib_comm *c, const void *send, void *recv, size_t count,
                    enum trib_type type, struct trib_request **req, char *err)
{
    return session_op_call(c, COLL_ALLGATHER, send, recv, count, type, 0, 0, req, err);
}

int trib_gather(struct trib_comm *c, const void *send, void *recv, size_t count,
                enum trib_type type, uint32_t root, struct trib_request **req, char *err)
{
    return session_op_call(c, COLL_GATHER, send, recv, count, type, 0, root, req, err);
}

int trib_scatter(struct trib_comm *c, const void *send, void *recv, size_t count,
                 enum trib_type type, uint32_t root, struct trib_request **req, char *err)
{
    return session_op_call(c, COLL_SCATTER, send, recv, count, type, 0, root, req, err);
}

int trib_all_to_all(struct trib_comm *c, const void *send, void *recv, size_t count,
                    enum trib_type type, struct trib_request **req, char *err)
{
    return session_op_call(c, COLL_ALLTOALL, send, recv, count, type, 0, 0, req, err);
}

int trib_barrier(struct trib_comm *c, struct trib_request **req, char *err)
{
    return session_op_call(c, COLL_BARRIER, NULL, NULL, 0, TRIB_INT8, 0, 0, req, err);
}
