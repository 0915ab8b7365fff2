/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A network plug-in of NCCL's without NCCL and GPUs: what NCCL calls of it, on host memory, by the
 * tables of every version.
 * usage: nccl_plugin ADDRESS:PORT RANK SIZE LIBNCCL-NET.SO WHAT
 * WHAT of two ranks: net, large, nobody, bad, die0, die1 (rank 1 is killed); of any number: coll, coll-die. Prints a line for each version.
 */
#include "nccl_plugin.h"
#include "nccl_plugin_coll.h"

#define BYTES (1u << 20)

/* ---- connections: rank 0 sends, rank 1 receives ---- */

static uint8_t *memory;
static void *mh, *mh_again;

static void net_open(void)
{
    char mine[NCCL_HANDLE] = {0}, all[2][NCCL_HANDLE];
    void *listening;

    must(!table_listen(&net, net_ctx, 0, mine, &listening), "listen");
    exchange(mine, all);
    for (comm = NULL; !comm; sched_yield())
        must(rank ? !NET(accept)(listening, &comm, NULL)
                  : !net_connect(&net, net_ctx, 0, all[1], &comm, NULL),
             "a connection");
    must(!NET(close_listen)(listening), "close");
    must(!NET(reg_mr)(comm, memory, 2 * BYTES, NCCL_PTR_HOST, &mh) && mh, "memory");
    must(!NET(reg_mr)(comm, memory, 2 * BYTES, NCCL_PTR_HOST, &mh_again) && mh_again != mh,
         "the same memory again");
}

static void net_close(void)
{
    must(!NET(dereg_mr)(comm, mh) && !NET(dereg_mr)(comm, mh_again), "memory");
    must(rank ? !NET(close_recv)(comm) : !NET(close_send)(comm), "close");
    quiet = true;
    must(NET(close_recv)(comm) == NCCL_INVALID_USAGE, "a refusal: it is closed");
    quiet = false;
}

static void finish(void *req, int *sizes)
{
    for (int done = 0; !done; sched_yield())
        must(!NET(test)(req, &done, sizes), "test");
    quiet = true;
    must(NET(test)(req, &(int){0}, NULL) == NCCL_INVALID_USAGE, "a refusal: it has ended");
    quiet = false;
    checked++;
}

static void *send_start(size_t at, size_t n, int tag)
{
    void *req = NULL;

    for (; !req; sched_yield())
        must(!net_isend(&net, comm, memory + at, n, tag, mh, &req), "isend");
    return req;
}

static void *receive_start(int n, const size_t *at, size_t *sizes, int *tags)
{
    void *data[8], *handles[8], *req = NULL;

    for (int i = 0; i < n; i++) {
        data[i] = memory + at[i];
        handles[i] = mh_again;
    }
    for (; !req; sched_yield())
        must(!net_irecv(&net, comm, n, data, sizes, tags, handles, &req), "irecv");
    return req;
}

static void fill(size_t at, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        memory[at + i] = pattern(i, seed);
}

static void expect(size_t at, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        must(memory[at + i] == pattern(i, seed), "byte %zu of message %u", i, seed);
}

static void one(size_t n, size_t posted, unsigned seed)
{
    size_t at = 1;
    int got = -1, tag = 5;
    void *req;

    if (!rank) {
        fill(at, n, seed);
        finish(send_start(at, n, 6), NULL);
        return;
    }
    memset(memory, 0xee, 2 * BYTES);
    finish(receive_start(1, &at, &posted, &tag), &got);
    must(got == (int)n, "%zu bytes, not %d", n, got);
    expect(at, n, seed);
    must(memory[0] == 0xee && memory[at + n] == 0xee, "nothing beside it");
    must(!NET(iflush)(comm, 1, &(void *){memory}, &got, &mh, &req) && !req, "a flush that is done");
}

/* Tags in another order than the receives. */
static void group(void)
{
    int tags[8], got[8], n = 8;
    size_t at[8], sizes[8];
    void *req[8];

    for (int i = 0; i < n; i++) {
        tags[i] = 100 + i;
        at[i] = (size_t)i * 8192;
        sizes[i] = 8192;
    }
    if (rank) {
        memset(memory, 0, 2 * BYTES);
        finish(receive_start(n, at, sizes, tags), got);
        for (int i = 0; i < n; i++) {
            must(got[i] == 1000 * i, "%d bytes, not %d", 1000 * i, got[i]);
            expect(at[i], (size_t)got[i], (unsigned)i);
        }
        return;
    }
    for (int i = 0; i < n; i++) {
        int k = (i * 3 + 5) % n;

        fill(at[k], (size_t)k * 1000, (unsigned)k);
        req[i] = send_start(at[k], (size_t)k * 1000, 100 + k);
    }
    for (int i = n; i-- > 0;)
        finish(req[i], NULL);
}

static void many(void)
{
    void *req[NCCL_REQUESTS], *more = NULL;
    const size_t n = 4096;
    size_t posted[1] = {n};
    int got, tag = 0;

    for (unsigned i = 0; i < NCCL_REQUESTS; i++) {
        size_t at = i * n;

        if (!rank)
            fill(at, n, i);
        req[i] = rank ? receive_start(1, &at, posted, &tag) : send_start(at, n, 0);
    }
    if (rank)
        must(!net_irecv(&net, comm, 1, &(void *){memory}, posted, &tag, &mh, &more) && !more,
             "no room for more");
    for (unsigned i = NCCL_REQUESTS; i-- > 0;) {
        finish(req[i], &got);
        if (rank)
            expect(i * n, n, i);
    }
}

static void net_run(void)
{
    static const size_t bytes[] = {0, 1, 4095, 4096, 4097, 65536, BYTES};

    net_open();
    for (unsigned i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
        one(bytes[i], bytes[i], i);
        one(bytes[i], BYTES, i + 50);
    }
    group();
    many();
    barrier();
    net_close();
}

/* A message that is larger than the receive. */
static void net_large(void)
{
    size_t at = 0, n = 100;
    void *req = NULL;
    int rc = 0, done = 0, tag = 0;

    net_open();
    if (rank) {
        req = receive_start(1, &at, &n, &tag);
        while (!done && !rc)
            rc = NET(test)(req, &done, NULL);
    } else {
        while (!rc && !req)
            rc = net_isend(&net, comm, memory, 101, 0, mh, &req);
    }
    must(rc == NCCL_INVALID_USAGE, "a refusal, not %d", rc);
    barrier();
    net_close();
}

/* Rank 0 dies while rank 1 waits for its message; or rank 1, while rank 0 waits for its receive. */
static void net_die(int who)
{
    size_t at = 0, n = 100;
    void *req = NULL;
    int rc = 0, done = 0, tag = 0;

    net_open();
    barrier();
    if (rank == who)
        raise(SIGKILL);
    if (rank)
        req = receive_start(1, &at, &n, &tag);
    while (!rc && !done)
        rc = rank ? NET(test)(req, &done, NULL) : net_isend(&net, comm, memory, n, 0, mh, &req);
    must(rc == NCCL_REMOTE_ERROR, "an error, not %d", rc);
    must(!(rank ? NET(close_recv)(comm) : NET(close_send)(comm)), "close");
}

/* Nobody accepts. */
static void net_nobody(void)
{
    char mine[NCCL_HANDLE] = {0}, all[2][NCCL_HANDLE];
    void *listening;
    int rc = 0;

    must(!table_listen(&net, net_ctx, 0, mine, &listening), "listen");
    exchange(mine, all);
    for (comm = NULL; !rank && !rc && !comm; sched_yield())
        rc = net_connect(&net, net_ctx, 0, all[1], &comm, NULL);
    must(rank || rc == NCCL_REMOTE_ERROR, "an error, not %d", rc);
    barrier();
    must(!NET(close_listen)(listening), "close");
}

/* ---- what cannot be ---- */

static void refused(int rc, int want, const char *what)
{
    must(rc == want, "%s: %d, not %d", what, want, rc);
    must(warnings && *warning, "%s: a sentence", what);
    warnings = 0;
    checked++;
}

static void net_bad(void)
{
    void *x = (void *)(uintptr_t)0x1234567, *got;
    char handle[NCCL_HANDLE] = {0};
    size_t sizes[9] = {100}, n = 100;
    int done, tags[9] = {0};

    warnings = 0;
    refused(NET(devices)(NULL), NCCL_INVALID_ARGUMENT, "devices");
    refused(table_listen(&net, net_ctx, 0, NULL, &got), NCCL_INVALID_ARGUMENT,
            "listen without a handle");
    refused(net_connect(&net, net_ctx, 0, handle, &got, NULL), NCCL_INVALID_ARGUMENT,
            "an empty handle");
    refused(NET(accept)(NULL, &got, NULL), NCCL_INVALID_ARGUMENT, "accept NULL");
    refused(NET(accept)(x, &got, NULL), NCCL_INVALID_USAGE, "accept nothing");
    refused(NET(reg_mr)(x, memory, n, NCCL_PTR_HOST, &got), NCCL_INVALID_USAGE, "memory of nobody");
    refused(NET(dereg_mr)(NULL, x), NCCL_INVALID_ARGUMENT, "deregister");
    refused(net_isend(&net, x, memory, n, 0, NULL, &got), NCCL_INVALID_USAGE, "send");
    refused(net_irecv(&net, x, 1, &(void *){memory}, sizes, tags, &(void *){NULL}, &got),
            NCCL_INVALID_USAGE, "receive");
    refused(NET(test)(NULL, &done, NULL), NCCL_INVALID_ARGUMENT, "test NULL");
    refused(NET(test)(x, &done, NULL), NCCL_INVALID_USAGE, "test nothing");
    refused(NET(close_send)(NULL), NCCL_INVALID_ARGUMENT, "close NULL");
    refused(NET(close_listen)(x), NCCL_INVALID_USAGE, "close nothing");
    refused(COLL(close_coll)(x), NCCL_INVALID_USAGE, "close no collective communicator");
    refused(COLL(test)(x, &done, NULL), NCCL_INVALID_USAGE, "test no collective");
    refused(COLL(connect)(NULL, 1, 0, x, &got), NCCL_INVALID_ARGUMENT, "connect without handles");
    if (version > 10) {
        refused(table_listen(&net, x, 0, handle, &got), NCCL_INVALID_USAGE,
                "listen without a context");
        refused(table_finalize(&net, x), NCCL_INVALID_USAGE, "finalize nothing");
    }
    net_open();
    warnings = 0;
    refused(NET(reg_mr)(comm, memory, n, NCCL_PTR_CUDA, &got), NCCL_INVALID_USAGE, "CUDA memory");
    refused(NET(reg_mr_dmabuf)(comm, memory, n, NCCL_PTR_CUDA, 0, 3, &got), NCCL_INVALID_USAGE,
            "a DMA buffer");
    if (rank)
        refused(net_irecv(&net, comm, 9, &(void *){memory}, sizes, tags, &mh, &got),
                NCCL_INVALID_ARGUMENT, "nine receives");
    else
        refused(net_isend(&net, comm, memory + 2 * BYTES - 50, n, 0, mh, &got),
                NCCL_INVALID_ARGUMENT, "beyond the memory");
    refused(net_isend(&net, comm, memory, n, 0, x, &got), NCCL_INVALID_USAGE, "no memory handle");
    barrier();
    net_close();
}

static void run(const char *what)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } part[] = {{"net", net_run}, {"large", net_large}, {"nobody", net_nobody},
                {"bad", net_bad}, {"coll", coll_run},   {"coll-die", coll_die}};

    tables_init();
    if (!strncmp(what, "die", 3))
        net_die(atoi(what + 3));
    for (unsigned i = 0; i < sizeof(part) / sizeof(part[0]); i++)
        if (!strcmp(what, part[i].name))
            part[i].run();
    if (version > 10)
        must(!table_finalize(&net, net_ctx) && !table_finalize(&coll, coll_ctx), "finalize");
    printf("rank %d: version %d: %s: %u right\n", rank, version, what, checked);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    void *library;
    bool once;

    if (argc != 6)
        return 2;
    rank = atoi(argv[2]);
    size = atoi(argv[3]);
    meet(argv[1]);
    library = dlopen(argv[4], RTLD_NOW | RTLD_LOCAL);
    must(library, "%s", dlerror());
    room = 4u * ELEMENTS + 65536u * MOST;
    memory = malloc(2 * BYTES);
    in = malloc(room);
    out = malloc(room);
    must(memory && in && out && size <= MOST, "memory");
    once =
        strcmp(argv[5], "net") != 0 && strcmp(argv[5], "coll") != 0 && strcmp(argv[5], "bad") != 0;
    for (int v = once ? 11 : 8; v <= (once ? 11 : 12); v++) {
        tables(library, v);
        run(argv[5]);
        if (!strstr(argv[5], "die"))
            barrier();
    }
    return 0;
}
