/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every call of tributary/coll.h as a program of another project makes it, results checked element by
 * element: all collectives and types, in place, with memory that is registered and that is not, two
 * communicators at once, threads, and refusals.
 * usage: coll_check ADDRESS:PORT RANK SIZE ALGO [die|broken RANK | kill PID | starve]. Prints one line; with die, that rank ends
 * itself in the middle and the others expect an error; with kill, rank 0 ends that process, and all do; with broken, the
 * rank gets no completion queue; with starve, no rank has a descriptor left, and all goes on.
 */
#include <tributary/coll.h>

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define MAX_COUNT 70001u

static uint32_t rank, size;
static char err[TRIB_TEXT];
static unsigned checked;

/* In place of libibverbs' for this whole program. */
static bool broken;
__attribute__((visibility("default"))) void *ibv_create_cq(void *context, int cqe, void *user,
                                                           void *channel, int vector);
void *ibv_create_cq(void *context, int cqe, void *user, void *channel, int vector)
{
    void *(*real)(void *, int, void *, void *, int) = dlsym(RTLD_NEXT, "ibv_create_cq");

    errno = ENOMEM;
    return broken || !real ? NULL : real(context, cqe, user, channel, vector);
}

#define must(cond, ...)                                                                            \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "rank %u, line %d: expected %s: ", rank, __LINE__, #cond);             \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static void *room(size_t elements)
{
    void *p = malloc(elements * 8 * size);

    must(p, "memory");
    return p;
}

/* ---- elements: small numbers, exact in every type ---- */

static unsigned input(uint32_t r, size_t i)
{
    return (r + 1 + (unsigned)(i % 3)) % 4;
}

static uint16_t half(unsigned v)
{
    static const uint16_t of[] = {0,      0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600,
                                  0x4700, 0x4800, 0x4880, 0x4900, 0x4980, 0x4a00, 0x4a80,
                                  0x4b00, 0x4b80, 0x4c00, 0x4c40, 0x4c80, 0x4cc0, 0x4d00,
                                  0x4d40, 0x4d80, 0x4dc0, 0x4e00};

    must(v < sizeof(of) / sizeof(of[0]), "%u in the table", v);
    return of[v];
}

static uint16_t bfloat(unsigned v)
{
    float f = (float)v;
    uint32_t bits;

    memcpy(&bits, &f, 4);
    return (uint16_t)(bits >> 16);
}

/* Not pairs, nor 8-bit floats, which set() has no table of. */
static bool has_sums(enum trib_type t)
{
    return t < TRIB_TYPES || t == TRIB_INT16 || t == TRIB_UINT16;
}

static void set(void *buf, size_t i, enum trib_type t, unsigned v)
{
    uint64_t bits = v;
    float f = (float)v;
    double d = v;

    if (t == TRIB_FLOAT16)
        bits = half(v);
    else if (t == TRIB_BFLOAT16)
        bits = bfloat(v);
    else if (t == TRIB_FLOAT32)
        memcpy(&bits, &f, 4);
    else if (t == TRIB_FLOAT64)
        memcpy(&bits, &d, 8);
    memcpy((char *)buf + i * trib_size(t), &bits, trib_size(t));
}

static void expect(const void *buf, size_t i, enum trib_type t, unsigned v, const char *what)
{
    uint64_t want = 0;

    set(&want, 0, t, v);
    must(!memcmp((const char *)buf + i * trib_size(t), &want, trib_size(t)),
         "%s: element %zu of type %d is %u", what, i, (int)t, v);
}

static unsigned reduced(int op, size_t i)
{
    unsigned v = input(0, i);

    for (uint32_t r = 1; r < size; r++) {
        unsigned x = input(r, i);

        v = op == TRIB_SUM    ? v + x
            : op == TRIB_MIN  ? (x < v ? x : v)
            : op == TRIB_MAX  ? (x > v ? x : v)
            : op == TRIB_LAND ? (x && v)
            : op == TRIB_LOR  ? (x || v)
                              : !x != !v;
    }
    return v;
}

static void finish(struct trib_comm *c, struct trib_request *req, const char *what)
{
    int rc = trib_wait(req);

    must(!rc, "%s: %s", what, trib_comm_error(c));
    trib_free(req);
    checked++;
}

/* ---- collectives ---- */

static void fill(void *buf, size_t n, enum trib_type t)
{
    for (size_t i = 0; i < n; i++)
        set(buf, i, t, input(rank, i));
}

static void reductions(struct trib_comm *c, enum trib_type t, int op, size_t n, bool in_place)
{
    char *in = room(n), *out = in_place ? in : room(n);
    size_t one = n * trib_size(t);
    struct trib_request *req;

    fill(in, n, t);
    must(!trib_all_reduce(c, in, out, n, t, op, &req, err), "%s", err);
    finish(c, req, "all_reduce");
    for (size_t i = 0; i < n; i++)
        expect(out, i, t, reduced(op, i), "all_reduce");
    fill(in, n, t);
    must(!trib_reduce(c, in, out, n, t, op, size - 1, &req, err), "%s", err);
    finish(c, req, "reduce");
    for (size_t i = 0; rank == size - 1 && i < n; i++)
        expect(out, i, t, reduced(op, i), "reduce");
    fill(in, n * size, t);
    char *to = in_place ? in + rank * one : out;
    must(!trib_reduce_scatter(c, in, to, n, t, op, &req, err), "%s", err);
    finish(c, req, "reduce_scatter");
    for (size_t i = 0; i < n; i++)
        expect(to, i, t, reduced(op, rank * n + i), "reduce_scatter");
    if (out != in)
        free(out);
    free(in);
}

/* Value and rank: of the greatest value's owners the first. */
static void pairs(struct trib_comm *c, enum trib_type t)
{
    struct {
        char bytes[4];
        int32_t index;
    } in[99], out[99];
    struct trib_request *req;

    for (size_t i = 0; i < 99; i++) {
        set(in[i].bytes, 0, t == TRIB_FLOAT32_LOC ? TRIB_FLOAT32 : TRIB_INT32, input(rank, i));
        in[i].index = (int32_t)rank;
    }
    must(!trib_all_reduce(c, in, out, 99, t, TRIB_MAXLOC, &req, err), "%s", err);
    finish(c, req, "maxloc");
    for (size_t i = 0; i < 99; i++) {
        uint32_t r = 0;

        while (input(r, i) != reduced(TRIB_MAX, i))
            r++;
        expect(out[i].bytes, 0, t == TRIB_FLOAT32_LOC ? TRIB_FLOAT32 : TRIB_INT32, input(r, i),
               "maxloc");
        must(out[i].index == (int32_t)r, "maxloc: rank %d", out[i].index);
    }
    must(trib_all_reduce(c, in, out, 99, t, TRIB_SUM, &req, err) == -EINVAL && *err, "no sum");
}

static void movements(struct trib_comm *c, enum trib_type t, size_t n)
{
    char *in = room(n), *out = room(n);
    size_t one = n * trib_size(t);
    struct trib_request *req;

    fill(in, n, t);
    must(!trib_all_gather(c, in, out, n, t, &req, err), "%s", err);
    finish(c, req, "all_gather");
    for (size_t i = 0; i < n * size; i++)
        expect(out, i, t, input((uint32_t)(i / n), i % n), "all_gather");
    memset(out, 0xa5, one * size);
    memcpy(out + rank * one, in, one);
    must(!trib_all_gather(c, out + rank * one, out, n, t, &req, err), "%s", err);
    finish(c, req, "all_gather in place");
    for (size_t i = 0; i < n * size; i++)
        expect(out, i, t, input((uint32_t)(i / n), i % n), "all_gather in place");
    must(!trib_gather(c, in, rank == 1 ? out : NULL, n, t, 1, &req, err), "%s", err);
    finish(c, req, "gather");
    must(!trib_scatter(c, rank == 1 ? out : NULL, in, n, t, 1, &req, err), "%s", err);
    finish(c, req, "scatter");
    for (size_t i = 0; i < n; i++)
        expect(in, i, t, input(rank, i), "scatter");
    must(!trib_broadcast(c, in, n, t, 2, &req, err), "%s", err);
    finish(c, req, "broadcast");
    for (size_t i = 0; i < n; i++)
        expect(in, i, t, input(2, i), "broadcast");
    for (uint32_t r = 0; r < size; r++)
        for (size_t i = 0; i < n; i++)
            set(in + r * one, i, t, input(rank + r, i));
    must(!trib_all_to_all(c, in, out, n, t, &req, err), "%s", err);
    finish(c, req, "all_to_all");
    for (uint32_t r = 0; r < size; r++)
        for (size_t i = 0; i < n; i++)
            expect(out + r * one, i, t, input(rank + r, i), "all_to_all");
    must(!trib_barrier(c, &req, err), "%s", err);
    finish(c, req, "barrier");
    free(in);
    free(out);
}

/* ---- memory ---- */

/* More ranges than a communicator once had room for, given back at once, and their memory used
 * again. */
static void memory(struct trib_comm *c)
{
    struct trib_request *req, *other;
    uint32_t *big = room(8192);

    for (unsigned k = 0; k < 100; k++) {
        uint32_t *v = malloc(64);

        must(v, "memory");
        fill(v, 16, TRIB_UINT32);
        must(!trib_register(v, 64), "register");
        must(!trib_all_reduce(c, v, v, 16, TRIB_UINT32, TRIB_SUM, &req, err), "%s", err);
        int rc = trib_deregister(v);
        must(rc == -EBUSY, "a buffer in use is not given up: %d", rc);
        finish(c, req, "registered");
        expect(v, 15, TRIB_UINT32, reduced(TRIB_SUM, 15), "registered");
        must(!trib_deregister(v), "deregister");
        must(trib_deregister(v) == -ENOENT, "deregister twice");
        free(v);
    }
    /* Two operations within one buffer, neither registered; the first is freed while it runs. */
    fill(big, 8192, TRIB_UINT32);
    must(!trib_all_reduce(c, big, big, 4096, TRIB_UINT32, TRIB_MAX, &req, err), "%s", err);
    must(!trib_all_reduce(c, big + 4096, big + 4096, 4096, TRIB_UINT32, TRIB_SUM, &other, err),
         "%s", err);
    trib_free(req);
    finish(c, other, "the second of two");
    expect(big, 4095, TRIB_UINT32, reduced(TRIB_MAX, 4095), "the first of two");
    expect(big, 8191, TRIB_UINT32, reduced(TRIB_SUM, 8191), "the second of two");
    free(big);
}

/* An operation that the last rank starts when all others have waited for it in vain. */
static void patience(struct trib_comm *a, struct trib_comm *b)
{
    struct trib_request *late = NULL, *told;

    if (rank != size - 1) {
        must(!trib_barrier(a, &late, err), "%s", err);
        must(!trib_wait_for(late, 0.01), "a rank is missing: %s", trib_comm_error(a));
    }
    must(!trib_barrier(b, &told, err), "%s", err);
    finish(b, told, "all have waited");
    if (rank == size - 1)
        must(!trib_barrier(a, &late, err), "%s", err);
    must(trib_wait_for(late, 60) == 1, "%s", trib_comm_error(a));
    must(trib_wait_for(late, 0) == 1, "ended");
    trib_free(late);
}

static void refusals(struct trib_comm *c)
{
    struct trib_request *req = NULL;
    uint32_t v[8] = {0};

    must(trib_all_reduce(c, v, v, 8, (enum trib_type)77, TRIB_SUM, &req, err) == -EINVAL, "type");
    must(trib_all_reduce(c, v, v, 8, TRIB_UINT32, 77, &req, err) == -EINVAL, "reduction");
    must(trib_broadcast(c, v, 8, TRIB_UINT32, size, &req, err) == -EINVAL && *err, "root");
    must(trib_all_reduce(c, v, v, SIZE_MAX, TRIB_UINT32, TRIB_SUM, &req, err) == -EINVAL, "count");
    must(trib_all_reduce(c, v, v + 2, 4, TRIB_UINT32, TRIB_SUM, &req, err) == -EINVAL && *err,
         "buffers that overlap");
    must(trib_all_reduce(c, v, v, 4, TRIB_UINT32, TRIB_SUM, NULL, err) == -EINVAL && *err, "req");
    must(trib_barrier(c, NULL, err) == -EINVAL && trib_barrier(c, NULL, NULL) == -EINVAL, "req");
    must(trib_all_reduce(c, NULL, v, 4, TRIB_UINT32, TRIB_SUM, &req, err) == -EINVAL, "no input");
    must(trib_all_reduce(c, v, NULL, 4, TRIB_UINT32, TRIB_SUM, &req, err) == -EINVAL, "no result");
    must(trib_all_gather(c, NULL, v, 1, TRIB_UINT32, &req, err) == -EINVAL, "no input");
    must(trib_broadcast(c, NULL, 4, TRIB_UINT32, 0, &req, err) == -EINVAL, "no buffer");
    must(trib_comm_trees(c, NULL) < 99, "trees without a reason");
    must(trib_register(NULL, 5) == -EINVAL && trib_register(v, 0) == -EINVAL, "register");
    must(!req, "a refused call sets no request");
    must(trib_test(NULL) == 1, "no request is done");
    trib_free(NULL);
}

/* ---- threads ---- */

struct work {
    struct trib_comm *c;
    unsigned rounds;
};

static void *loop(void *arg)
{
    struct work *w = arg;
    uint64_t *v = room(5000);
    struct trib_request *req;
    char why[TRIB_TEXT];

    for (unsigned k = 0; k < w->rounds; k++) {
        fill(v, 5000, TRIB_UINT64);
        must(!trib_all_reduce(w->c, v, v, 5000, TRIB_UINT64, TRIB_SUM, &req, why), "%s", why);
        must(!trib_wait(req), "%s", trib_comm_error(w->c));
        trib_free(req);
        for (size_t i = 0; i < 5000; i++)
            expect(v, i, TRIB_UINT64, reduced(TRIB_SUM, i), "by a thread");
    }
    free(v);
    return NULL;
}

/* Memory of nobody's operations comes and goes meanwhile. */
static void *churn(void *arg)
{
    char *p = malloc(4096);

    while (!atomic_load((atomic_bool *)arg))
        must(p && !trib_register(p, 4096) && !trib_deregister(p), "register");
    free(p);
    return NULL;
}

static void two_at_once(struct trib_comm *a, struct trib_comm *b)
{
    struct work w = {b, 20}, here = {a, 20};
    atomic_bool done = false;
    pthread_t t, u;

    must(!pthread_create(&t, NULL, loop, &w), "thread");
    must(!pthread_create(&u, NULL, churn, &done), "thread");
    loop(&here);
    pthread_join(t, NULL);
    atomic_store(&done, true);
    pthread_join(u, NULL);
    checked += 40;
}

/* ---- a rank that dies ---- */

/* At rank `who` the process ends that is given: its own, or one of the fabric. */
static int see_a_death(struct trib_comm *c, uint32_t who, pid_t victim)
{
    struct trib_request *req;
    uint32_t *v = room(MAX_COUNT);
    int rc = 0;

    for (unsigned k = 0; !rc && k < 1000; k++) {
        if (k == 2 && rank == who)
            kill(victim, SIGKILL);
        fill(v, MAX_COUNT, TRIB_UINT32);
        rc = trib_all_reduce(c, v, v, MAX_COUNT, TRIB_UINT32, TRIB_SUM, &req, err);
        if (!rc) {
            rc = trib_wait(req);
            trib_free(req);
        }
    }
    must(rc < 0 && *trib_comm_error(c), "an error after a rank has died");
    printf("rank %u: %s\n", rank, trib_comm_error(c));
    return 0;
}

/* ---- no descriptor left ---- */

/* Whoever cannot look whether others are there does not take them for dead. */
static int go_on_without_descriptors(struct trib_comm *c)
{
    const time_t end = time(NULL) + 4; /* longer than it takes to give somebody up */
    struct rlimit none = {0, 0};
    struct trib_request *req;
    uint32_t on;

    must(!setrlimit(RLIMIT_NOFILE, &none), "setrlimit");
    do {
        on = time(NULL) < end;
        must(!trib_all_reduce(c, &on, &on, 1, TRIB_UINT32, TRIB_MAX, &req, err), "%s", err);
        must(!trib_wait(req), "%s", trib_comm_error(c));
        trib_free(req);
    } while (on); /* alike at all ranks */
    printf("rank %u: went on without descriptors\n", rank);
    return 0;
}

int main(int argc, char **argv)
{
    static const int ops[] = {TRIB_SUM, TRIB_MIN, TRIB_MAX, TRIB_LAND, TRIB_LOR, TRIB_LXOR};
    struct trib_comm *a, *b;
    struct trib_store *store;
    struct trib_oob oob;

    if (argc < 5 || argc > 7)
        return fprintf(stderr, "usage: coll_check ADDRESS:PORT RANK SIZE ALGO [die|broken RANK | "
                               "kill PID | starve]\n"),
               2;
    rank = (uint32_t)atoi(argv[2]);
    size = (uint32_t)atoi(argv[3]);
    struct trib_comm_options options = {.algo = argv[4]};
    broken = argc == 7 && !strcmp(argv[5], "broken") && rank == (uint32_t)atoi(argv[6]);

    must(trib_coll_version() == TRIB_COLL_VERSION, "the header's version");
    must(!trib_store_open(&store, argv[1], rank, size, 30, err), "%s", err);
    trib_store_oob(store, &oob);
    if (trib_comm_create(&a, &oob, &options, err)) {
        printf("refused: %s\n", err);
        trib_store_close(store);
        return 3;
    }
    must(trib_comm_rank(a) == rank && trib_comm_size(a) == size, "rank and size");
    if (argc == 6 && !strcmp(argv[5], "starve"))
        return go_on_without_descriptors(a);
    if (argc == 7 && !strcmp(argv[5], "kill"))
        return see_a_death(a, 0, (pid_t)atoi(argv[6]));
    if (argc == 7)
        return see_a_death(a, (uint32_t)atoi(argv[6]), getpid());
    for (enum trib_type t = 0; t < TRIB_ALL_TYPES; t++)
        for (unsigned o = 0; o < 3 && has_sums(t); o++)
            reductions(a, t, ops[o], t % 2 ? 1003 : 64, o == 1);
    for (unsigned o = 3; o < sizeof(ops) / sizeof(ops[0]); o++) {
        reductions(a, TRIB_INT16, ops[o], 1001, false);
        reductions(a, TRIB_UINT64, ops[o], 77, true);
    }
    pairs(a, TRIB_FLOAT32_LOC);
    pairs(a, TRIB_INT32_LOC);
    reductions(a, TRIB_INT32, TRIB_SUM, 1, false);
    reductions(a, TRIB_FLOAT32, TRIB_SUM, MAX_COUNT / size, true);
    movements(a, TRIB_INT8, 777);
    movements(a, TRIB_INT64, 1);
    refusals(a);
    memory(a);
    must(!trib_comm_create(&b, &oob, &options, err), "%s", err);
    patience(a, b);
    two_at_once(a, b);
    trib_comm_destroy(a);
    movements(b, TRIB_FLOAT64, 33);
    trib_comm_destroy(b);
    trib_store_close(store);
    printf("rank %u: %u operations, %s\n", rank, checked, argv[4]);
    return 0;
}
