/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a rank and its launcher read of each other: a stream of bytes in pieces of any length becomes
 * messages, and each message is read as both ends would. A row that is accepted fits the buffers, and
 * what a rank answers indexes no table beyond its end.
 *
 * Input: how to cut it, the number of ranks, the size of buffers, then records { type, cut, n, n
 * bytes }, where a body of zeros of the type's length has those bytes in it; type 0: the bytes go
 * into the stream as they are.
 */
#include "host/bench/verify/samples.h"
#include "host/bench/sweep.h"
#include "host/bench/verify/test_pattern.h"
#include "host/launch/msg_read.h"
#include "host/launch/ranks_priv.h"
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MTU  1024u
#define BODY 4096u
#define OPS  100u /* of a run */

static struct fab_node nodes[1] = {{.name = "h0"}};
static uint16_t hosts[1];
static struct fabric fab = {
    .n_nodes = 1, .n_hosts = 1, .nodes = nodes, .hosts = hosts, .n_trees = 2, .mtu = MTU};
static struct sweep sweep = {.fab = &fab};
static struct test_pattern pattern;

static unsigned nranks;
static size_t buf_bytes;
static uint64_t sample_bytes; /* of the row that was accepted last */

/* Buffers of exactly that size: the sanitizer sees every byte beyond. */
static void fill(const struct msg_prepare *p)
{
    struct layout l = {.kind = p->coll,
                       .rank = p->root ? p->root - 1 : nranks - 1,
                       .nranks = nranks,
                       .root = p->root,
                       .sparse = p->sparse,
                       .count = p->count,
                       .in_place = p->in_place};
    static struct samples samples;
    uint8_t *buf[2] = {malloc(buf_bytes), malloc(buf_bytes)};

    if (!buf[0] || !buf[1])
        abort();
    memset(buf[0], 0, buf_bytes);
    memset(buf[1], 0, buf_bytes);
    sample_bytes = 0;
    if (p->sampled) {
        samples_choose(&samples, &l, p->type, MTU);
        sample_bytes = (uint64_t)samples.n * dtype_size(p->type);
    }
    pattern_set(&pattern, &l, p->type, p->op);
    pattern_sample(&pattern, p->sampled ? &samples : NULL, NULL, 0);
    pattern_prepare(&pattern, &l, buf[0], buf[1]);
    pattern_check(&pattern, &l, buf[0], buf[1]);
    free(buf[0]);
    free(buf[1]);
}

static void as_rank(const struct msg *m)
{
    static uint16_t host[FAB_MAX_MEMBERS];
    struct msg_init in;
    struct msg_prepare p;
    struct msg_check c;
    struct msg_progress limit;
    struct msg_run run;
    char text[MSG_TEXT];

    if (m->type == MSG_INIT && !msg_read_init(m, &in, host)) {
        check(in.rank < in.nranks && in.nranks <= FAB_MAX_MEMBERS, "a rank that is not in the job");
        check(in.n_trees <= COLL_TREES && in.n_policy <= ALGO_SCHEDULE,
              "more than the tables have");
    }
    if (m->type == MSG_PREPARE && !msg_read_prepare(m, nranks, buf_bytes, &p))
        fill(&p);
    if (m->type == MSG_CHECK && !msg_read_check(m, sample_bytes, &c))
        check(m->len == sizeof(c) + c.ways * sample_bytes, "other samples than said");
    if (m->type == MSG_RUN)
        (void)msg_read_run(m, &run);
    if (m->type == MSG_LIMIT)
        (void)msg_read(m, &limit, sizeof(limit));
    msg_read_text(m, text, sizeof(text));
    check(strlen(text) < sizeof(text) && !strpbrk(text, "\033\n\r\a\b"), "a text that is no line");
}

static void as_launcher(const struct msg *m, unsigned rank)
{
    static int64_t ends[OPS];
    struct answers a = {.s = &sweep, .iters = OPS, .ends = ends, .label = ""};

    if (m->type != MSG_DONE || ranks_take_done(&a, rank, m))
        return;
    check(sched_algo_name((enum coll_algo)a.algo) != NULL && a.algo < ALGO_COUNT && a.ops <= OPS,
          "an algorithm that there is not");
    for (unsigned i = 0; i < sweep.granted.trees; i++)
        check(sweep.granted.tree[i] < fab.n_trees, "a tree that there is not");
    check(strlen(sweep.fell_back) < sizeof(sweep.fell_back) &&
              strlen(sweep.memory) < sizeof(sweep.memory),
          "a text without end");
}

static void take(struct inbox *in, int fd)
{
    struct msg m;
    int rc;

    while ((rc = msg_fill(in, fd)) > 0)
        while (msg_next(in, &m) > 0) {
            as_rank(&m);
            as_launcher(&m, m.len % nranks);
        }
}

static size_t length_of(uint32_t type)
{
    switch (type) {
    case MSG_INIT:
        return sizeof(struct msg_init) + nranks * sizeof(uint16_t);
    case MSG_PREPARE:
        return sizeof(struct msg_prepare);
    case MSG_RUN:
        return sizeof(struct msg_run);
    case MSG_CHECK:
        return sizeof(struct msg_check) + sample_bytes;
    case MSG_DONE:
        return sizeof(struct msg_done);
    case MSG_LIMIT:
    case MSG_PROGRESS:
        return sizeof(struct msg_progress);
    default:
        return 0;
    }
}

/* A body of zeros with these bytes in it: { offset, low and high, how many, bytes }... */
static size_t body(uint8_t *b, uint32_t type, const uint8_t *p, size_t n)
{
    size_t len = length_of(type);

    len = len < BODY ? len : BODY;
    memset(b, 0, BODY);
    if (type == MSG_INIT) {
        struct msg_init in = {.nranks = nranks, .gpu = BUFFER_HOST};

        memcpy(b, &in, sizeof(in));
    }
    while (n >= 3) {
        size_t at = p[0] | (size_t)p[1] << 8, k = p[2] & 15u;

        k = k < n - 3 ? k : n - 3;
        if (at + k <= len)
            memcpy(b + at, p + 3, k);
        if (p[2] & 0x80)
            len -= len != 0;
        p += 3 + k, n -= 3 + k;
    }
    if (type == MSG_DONE) { /* the times of its operations, of which ops is the number */
        uint32_t ops;

        memcpy(&ops, b + offsetof(struct msg_done, ops), sizeof(ops));
        len += (ops <= OPS ? ops : 0) * sizeof(int64_t);
    }
    return len < BODY ? len : BODY;
}

/* Into the socket, in two pieces. */
static void put(struct inbox *in, const int fd[2], const uint8_t *b, size_t n, size_t cut)
{
    cut = n ? cut % n : 0;
    if (cut && send(fd[1], b, cut, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
        take(in, fd[0]);
    if (n - cut && send(fd[1], b + cut, n - cut, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
        take(in, fd[0]);
}

static void record(struct inbox *in, const int fd[2], uint8_t type, uint8_t cut, const uint8_t *p,
                   size_t n)
{
    static uint8_t b[8 + BODY];
    uint32_t head[2] = {type % (MSG_GRANTED + 2)};

    if (!head[0]) {
        put(in, fd, p, n, cut);
        return;
    }
    head[1] = (uint32_t)body(b + sizeof(head), head[0], p, n);
    memcpy(b, head, sizeof(head));
    put(in, fd, b, sizeof(head) + head[1], cut);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct inbox in = {0};
    int fd[2];

    if (size < 2)
        return 0;
    if (!pattern.all && pattern_init(&pattern))
        abort();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
        abort();
    nranks = 1 + data[0] % 16u;
    buf_bytes = (size_t)256 << data[1] % 9;
    sample_bytes = 0;
    sweep.nranks = nranks;
    for (data += 2, size -= 2; size >= 3;) {
        size_t n = data[2] < size - 3 ? data[2] : size - 3;

        record(&in, fd, data[0], data[1], data + 3, n);
        data += 3 + n, size -= 3 + n;
    }
    close(fd[1]);
    take(&in, fd[0]);
    close(fd[0]);
    msg_free(&in);
    return 0;
}
