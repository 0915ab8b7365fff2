/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An NCCL of Tributary's own collectives, for tests of trib nccl without a GPU: the calls that it
 * makes, by the algorithm that NCCL_ALGO names, in the caller's thread, staged through host memory. FAKE_NCCL_WRONG=RANK: that
 * rank's results have a wrong element. FAKE_NCCL_DIES=RANK: it ends in its second operation.
 */
#include "include/tributary/coll.h"

#include <arpa/inet.h>
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* they are in NCCL's header */
#define API __attribute__((visibility("default")))

struct id {
    char text[128];
};

static char last[256];
static struct trib_comm *comm;
static struct trib_store *store;
static int me, operations;
static float *staging[2]; /* what is sent, what is received */
static size_t staged;

enum { SUCCESS, SYSTEM = 2, ARGUMENT = 4 };

API int ncclGetVersion(int *v)
{
    const char *given = getenv("FAKE_NCCL_VERSION");

    *v = given ? atoi(given) : 23000;
    return SUCCESS;
}

API const char *ncclGetErrorString(int e)
{
    return e == SYSTEM ? "unhandled system error" : e == ARGUMENT ? "invalid argument" : "no error";
}

API const char *ncclGetLastError(void *c)
{
    (void)c;
    return last;
}

/* A free port of this machine, where rank 0 will listen. */
API int ncclGetUniqueId(struct id *id)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(a);
    int s = socket(AF_INET, SOCK_STREAM, 0);

    if (s < 0 || bind(s, (struct sockaddr *)&a, len) || getsockname(s, (struct sockaddr *)&a, &len))
        return SYSTEM;
    close(s);
    memset(id, 0, sizeof(*id));
    snprintf(id->text, sizeof(id->text), "127.0.0.1:%u", ntohs(a.sin_port));
    return SUCCESS;
}

static int failed(int rc, const char *why)
{
    snprintf(last, sizeof(last), "%s", why);
    return rc ? SYSTEM : SUCCESS;
}

static bool is_rank(const char *variable)
{
    const char *r = getenv(variable);

    return r && atoi(r) == me;
}

/* NCCL's words for an algorithm, with or without a collective before them. */
static const char *algo(void)
{
    const char *named = getenv("NCCL_ALGO");

    return named && strstr(named, "CollNetChain") && getenv("NCCL_COLLNET_ENABLE") ? "sharp"
                                                                                   : "ring";
}

API int ncclCommInitRank(void **c, int ranks, struct id id, int rank)
{
    struct trib_comm_options options = {.algo = algo()};
    char err[TRIB_TEXT] = "";
    struct trib_oob oob;
    int rc;

    me = rank;
    rc = trib_store_open(&store, id.text, (uint32_t)rank, (uint32_t)ranks, 60, err);
    if (!rc) {
        trib_store_oob(store, &oob);
        rc = trib_comm_create(&comm, &oob, &options, err);
    }
    *c = comm;
    return failed(rc, err);
}

static bool copy(CUdeviceptr to, CUdeviceptr of, size_t bytes, CUstream s)
{
    return cuMemcpyAsync(to, of, bytes, s) == CUDA_SUCCESS &&
           cuStreamSynchronize(s) == CUDA_SUCCESS;
}

static bool has_staging(size_t bytes)
{
    bool fits = bytes <= staged;

    for (unsigned i = 0; i < 2 && !fits; i++) {
        if (staging[i])
            cuMemHostUnregister(staging[i]);
        free(staging[i]);
        staging[i] = malloc(bytes);
        if (!staging[i] || cuMemHostRegister(staging[i], bytes, 0))
            return false;
    }
    staged = fits ? staged : bytes;
    return true;
}

API int ncclAllReduce(const void *send, void *recv, size_t count, int type, int op, void *c,
                      void *stream)
{
    char err[TRIB_TEXT] = "";
    struct trib_request *req;
    int rc;

    if (type != 7 || op != 0 || c != comm)
        return ARGUMENT;
    if (operations++ == 1 && is_rank("FAKE_NCCL_DIES"))
        _exit(3);
    if (!has_staging(count * sizeof(float)) ||
        !copy((CUdeviceptr)staging[0], (CUdeviceptr)send, count * sizeof(float), stream))
        return failed(-1, "no staging");
    rc = trib_all_reduce(comm, staging[0], staging[1], count, TRIB_FLOAT32, TRIB_SUM, &req, err);
    if (rc)
        return failed(rc, err);
    rc = trib_wait(req);
    if (rc)
        failed(rc, trib_comm_error(comm));
    trib_free(req);
    if (count > 1 && is_rank("FAKE_NCCL_WRONG"))
        staging[1][count - 1] += 1;
    if (!rc && !copy((CUdeviceptr)recv, (CUdeviceptr)staging[1], count * sizeof(float), stream))
        return failed(-1, "no staging");
    return rc ? SYSTEM : SUCCESS;
}

API int ncclCommDestroy(void *c)
{
    (void)c;
    trib_comm_destroy(comm);
    trib_store_close(store);
    return SUCCESS;
}
