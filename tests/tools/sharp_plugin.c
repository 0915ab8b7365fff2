/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NVIDIA's NCCL SHARP plug-in without NCCL and GPUs: its CollNet table, version 10, called as NCCL calls it,
 * on host memory: all-reduce, and reduce-scatter and all-gather by windows that span blocks.
 * usage: sharp_plugin ADDRESS:PORT RANK SIZE LIBNCCL-NET.SO. At most 16 ranks. Prints one line.
 */
#include "sharp_job.h"

#include <dlfcn.h>
#include <stdarg.h>

#define HANDLE   128
#define MOST     16
#define BLOCK    4096u /* floats */
#define FLOAT32  7
#define SUM      0
#define HOST_PTR 1
#define LOG_INFO 3

typedef void (*logger)(int level, unsigned long flags, const char *file, int line, const char *fmt,
                       ...);

struct sge {
    void *mr, *address;
    size_t size;
};

struct collnet_v10 {
    const char *name;
    int (*init)(logger log);
    int (*devices)(int *n);
    int (*get_properties)(int dev, void *props);
    int (*listen)(int dev, void *handle, void **lcomm);
    int (*connect)(void *handles[], int nranks, int rank, void *lcomm, void **comm);
    int (*reduce_support)(int type, int op, int *supported);
    int (*reg_mr)(void *comm, void *data, size_t size, int type, void **mr);
    int (*reg_mr_dmabuf)(void *comm, void *data, size_t size, int type, uint64_t offset, int fd,
                         void **mr);
    int (*dereg_mr)(void *comm, void *mr);
    int (*iallreduce)(void *comm, void *send, void *recv, size_t count, int type, int op,
                      void *send_mr, void *recv_mr, void **req);
    int (*iallgather)(void *comm, void *send, int n, struct sge *recv, size_t block, size_t offset,
                      size_t bytes, void *send_mr, void **req);
    int (*ireducescatter)(void *comm, int n, struct sge *send, void *recv, size_t block,
                          size_t offset, size_t bytes, int type, int op, void *recv_mr, void **req);
    int (*iflush)(void *comm, void *data, int size, void *mr, void **req);
    int (*test)(void *req, int *done, int *size);
    int (*close_coll)(void *comm);
    int (*close_listen)(void *lcomm);
};

static const struct collnet_v10 *p;
static void *comm, *send_mr[2], *recv_mr[2];
static float *in, *out;
static size_t all;

static void say(int level, unsigned long flags, const char *file, int line, const char *fmt, ...)
{
    va_list ap;

    (void)flags, (void)file, (void)line;
    if (level >= LOG_INFO)
        return;
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}

static void finish(void *req)
{
    int done = 0, bytes;

    while (!done)
        must(!p->test(req, &done, &bytes), "test");
    checked++;
}

static void open_plugin(const char *path, struct trib_oob *oob)
{
    char mine[HANDLE] = {0}, handle[MOST][HANDLE] = {{0}};
    void *file = dlopen(path, RTLD_NOW), *each[MOST], *listening;
    int n = 0;

    must(file, "%s", dlerror());
    p = dlsym(file, "ncclCollNetPlugin_v10");
    must(p, "a CollNet table, version 10, in %s", path);
    must(!p->init(say) && !p->devices(&n) && n > 0, "a device, not %d", n);
    must(!p->listen(0, mine, &listening), "listen");
    must(!oob->gather(oob->ctx, 0, mine, handle, HANDLE), "gather");
    for (int r = 0; r < size; r++) {
        must(!oob->bcast(oob->ctx, handle[r], HANDLE, 0), "bcast");
        each[r] = handle[r];
    }
    must(!p->connect(each, size, rank, listening, &comm), "connect");
    must(!p->close_listen(listening), "close");
}

static float sum(size_t i)
{
    return (float)(size * (size + 1) / 2) + (float)((size_t)size * (i % 5));
}

/* Where NCCL points to in a rank's own block: where the window starts, if that is within it. */
static size_t own_part(size_t at, size_t block)
{
    size_t own = block * (size_t)rank;

    return at > own && at < own + block ? at - own : 0;
}

static void allreduce(void)
{
    void *req;

    must(!p->iallreduce(comm, in, out, all, FLOAT32, SUM, send_mr[0], recv_mr[1], &req),
         "allreduce");
    finish(req);
    for (size_t i = 0; i < all; i++)
        must(out[i] == sum(i), "allreduce: element %zu is %f", i, (double)sum(i));
}

static void reduce_scatter(size_t step)
{
    for (size_t at = 0; at < all; at += step) {
        size_t n = all - at < step ? all - at : step;
        struct sge part = {send_mr[0], in + at, n * 4};
        void *req;

        must(!p->ireducescatter(comm, 1, &part, out + own_part(at, BLOCK), BLOCK * 4, at * 4, n * 4,
                                FLOAT32, SUM, recv_mr[1], &req),
             "reduce_scatter");
        finish(req);
    }
    for (size_t i = 0; i < BLOCK; i++)
        must(out[i] == sum(BLOCK * (size_t)rank + i), "reduce_scatter: element %zu", i);
}

static void all_gather(size_t step)
{
    for (size_t at = 0; at < all * 4; at += step) {
        size_t n = all * 4 - at < step ? all * 4 - at : step;
        struct sge part = {recv_mr[0], (char *)out + at, n};
        void *req;

        must(!p->iallgather(comm, (char *)in + own_part(at, BLOCK * 4), 1, &part, BLOCK * 4, at, n,
                            send_mr[0], &req),
             "allgather");
        finish(req);
    }
    for (size_t i = 0; i < all; i++)
        must(out[i] == (float)(i / BLOCK + 1 + i % BLOCK % 5), "allgather: element %zu", i);
}

int main(int argc, char **argv)
{
    struct trib_store *store;
    struct trib_oob oob;
    char err[TRIB_TEXT];

    if (argc != 5)
        return fprintf(stderr, "usage: sharp_plugin ADDRESS:PORT RANK SIZE LIBNCCL-NET.SO\n"), 2;
    rank = atoi(argv[2]);
    size = atoi(argv[3]);
    must(size <= MOST, "at most %d ranks", MOST);
    must(!trib_store_open(&store, argv[1], (uint32_t)rank, (uint32_t)size, 30, err), "%s", err);
    trib_store_oob(store, &oob);
    open_plugin(argv[4], &oob);
    all = BLOCK * (size_t)size;
    in = malloc(all * 4);
    out = malloc(all * 4);
    must(in && out, "memory");
    for (unsigned k = 0; k < 2; k++) /* for sending and for receiving */
        must(!p->reg_mr(comm, in, all * 4, HOST_PTR, &send_mr[k]) &&
                 !p->reg_mr(comm, out, all * 4, HOST_PTR, &recv_mr[k]),
             "reg");
    for (size_t i = 0; i < all; i++)
        in[i] = (float)(rank + 1) + (float)(i % 5);
    allreduce();
    reduce_scatter(BLOCK * 3 / 2);
    reduce_scatter(all);
    all_gather(BLOCK * 5);
    all_gather(all * 4);
    for (unsigned k = 0; k < 2; k++)
        must(!p->dereg_mr(comm, send_mr[k]) && !p->dereg_mr(comm, recv_mr[k]), "dereg");
    must(!p->close_coll(comm), "close");
    trib_store_close(store);
    printf("rank %d: %u operations exact by the plug-in\n", rank, checked);
    return 0;
}
