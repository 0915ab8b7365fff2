/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of libibverbs that are newer than its header here, looked up by name, on an emulated device:
 * each is done or refused with EOPNOTSUPP. The last one is newer than all: whatever slot of the
 * private table of a driver libibverbs calls. Prints what is wrong; exit code 1.
 */
#include <infiniband/verbs.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct mr_attr {
    size_t length;
    int access;
    uint64_t comp_mask, iova;
    void *addr;
    int fd;
    uint64_t fd_offset;
    void *dmah, *buf;
};

static int bad;

static void expect(const char *what, long found, long expected)
{
    if (found == expected)
        return;
    printf("%s: found %ld (errno %d), expected %ld\n", what, found, errno, expected);
    bad = 1;
}

static void *call_of(const char *name)
{
    void *fn = dlsym(RTLD_DEFAULT, name);

    if (!fn) {
        printf("%s: not exported\n", name);
        exit(1);
    }
    errno = 0;
    return fn;
}

#define REFUSED(what, result, value)                                                               \
    do {                                                                                           \
        expect(what, (long)(result), value);                                                       \
        expect(what ": errno", errno, EOPNOTSUPP);                                                 \
    } while (0)
#define CALL(ret, name, params) ((ret(*) params)call_of(#name))

static char mem[4096] __attribute__((aligned(4096)));

static void regions(struct ibv_pd *pd)
{
    struct mr_attr a = {.length = 64,
                        .access = IBV_ACCESS_LOCAL_WRITE,
                        .comp_mask = 3,
                        .iova = 1u << 20,
                        .addr = mem};
    struct ibv_mr *mr;

    mr = CALL(struct ibv_mr *, ibv_reg_mr_ex, (struct ibv_pd *, struct mr_attr *))(pd, &a);
    expect("ibv_reg_mr_ex", mr && mr->addr == mem && mr->length == 64, 1);
    if (mr)
        expect("ibv_dereg_mr", ibv_dereg_mr(mr), 0);
    a.comp_mask = 2 | 16;
    REFUSED("ibv_reg_mr_ex with a DMA handle",
            CALL(void *, ibv_reg_mr_ex, (struct ibv_pd *, struct mr_attr *))(pd, &a), 0);
    a.comp_mask = 1;
    expect("ibv_reg_mr_ex of nothing",
           (long)CALL(void *, ibv_reg_mr_ex, (struct ibv_pd *, struct mr_attr *))(pd, &a), 0);
    expect("ibv_reg_mr_ex of nothing: errno", errno, EINVAL);
}

int main(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *c = list && list[0] ? ibv_open_device(list[0]) : NULL;
    struct ibv_pd *pd = c ? ibv_alloc_pd(c) : NULL;
    struct ibv_qp qp = {.context = c};
    struct ibv_dm dm = {.context = c};
    uint64_t speed = 0;
    void *buf;

    if (!pd)
        return 2;
    regions(pd);
    REFUSED("ibv_alloc_dmah", CALL(void *, ibv_alloc_dmah, (struct ibv_context *, void *))(c, NULL),
            0);
    REFUSED("ibv_alloc_buf",
            CALL(void *, ibv_alloc_buf, (struct ibv_pd *, size_t, void **))(pd, 64, &buf), 0);
    REFUSED("ibv_reg_buf_mr",
            CALL(void *, ibv_reg_buf_mr,
                 (struct ibv_pd *, void *, void *, size_t, int))(pd, NULL, mem, 64, 0),
            0);
    REFUSED("ibv_dm_export_dmabuf_fd", CALL(int, ibv_dm_export_dmabuf_fd, (struct ibv_dm *))(&dm),
            -1);
    REFUSED("ibv_create_comp_cntr",
            CALL(void *, ibv_create_comp_cntr, (struct ibv_context *, void *))(c, NULL), 0);
    REFUSED(
        "_ibv_query_comp_cntr_caps",
        CALL(int, _ibv_query_comp_cntr_caps, (struct ibv_context *, void *, size_t))(c, mem, 16),
        EOPNOTSUPP);
    REFUSED("ibv_qp_attach_comp_cntr",
            CALL(int, ibv_qp_attach_comp_cntr, (struct ibv_qp *, void *, void *))(&qp, NULL, NULL),
            EOPNOTSUPP);
    expect(
        "ibv_query_port_speed",
        CALL(int, ibv_query_port_speed, (struct ibv_context *, uint32_t, uint64_t *))(c, 1, &speed),
        0);
    printf("%lu Mb/s\n", (unsigned long)speed * 100);
    for (unsigned slot = 0; slot < 200; slot += 7) {
        void *(**table)(void *) = (void *(**)(void *))(void *)verbs_get_ctx(c)->priv;

        errno = 0;
        REFUSED("a slot of the private table", (intptr_t)table[slot](c), EOPNOTSUPP);
    }
    ibv_dealloc_pd(pd);
    ibv_close_device(c);
    ibv_free_device_list(list);
    return bad;
}
