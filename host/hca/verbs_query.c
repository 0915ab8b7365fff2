/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes of the device and its port. */
#include "host/hca/guid.h"
#include "host/hca/hca_priv.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

unsigned mtu_bytes(enum ibv_mtu m)
{
    return m >= IBV_MTU_256 && m <= IBV_MTU_4096 ? 128u << m : 0;
}

enum ibv_mtu mtu_enum(unsigned bytes)
{
    enum ibv_mtu m = IBV_MTU_256;

    while (m < IBV_MTU_4096 && mtu_bytes(m + 1) <= bytes)
        m++;
    return m;
}

static __be64 guid_of(uint32_t ip)
{
    uint8_t g[8];
    __be64 guid;

    hca_guid_of_ip(ip, g);
    memcpy(&guid, g, 8);
    return guid;
}

/* ---- device ---- */

int hca_query_device(struct ibv_context *v, struct ibv_device_attr *a)
{
    struct hca *h = hca_ctx_of(v)->hca;

    *a = (struct ibv_device_attr){
        .node_guid = guid_of(h->cfg.ip),
        .sys_image_guid = guid_of(h->cfg.ip),
        .max_mr_size = HCA_MAX_MR_SIZE,
        .page_size_cap = 0xfffff000,
        .vendor_id = 0x025400, /* the locally administered prefix of our MACs */
        .vendor_part_id = 1,
        .max_qp = (int)h->cfg.max_qps,
        .max_qp_wr = HCA_MAX_WR,
        .device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT |
                            IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN |
                            IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
                            IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_SRQ_RESIZE,
        .max_sge = ROCE_MAX_SGE,
        .max_sge_rd = ROCE_MAX_SGE,
        .max_cq = HCA_MAX_CQ,
        .max_cqe = HCA_MAX_CQE,
        .max_mr = HCA_MAX_MR,
        .max_mw = HCA_MAX_MW,
        .max_pd = HCA_MAX_PD,
        .max_qp_rd_atom = ROCE_MAX_RD_ATOMIC,
        .max_res_rd_atom = ROCE_MAX_RD_ATOMIC * (int)h->cfg.max_qps,
        .max_qp_init_rd_atom = ROCE_MAX_RD_ATOMIC,
        .atomic_cap = IBV_ATOMIC_HCA,
        .max_mcast_grp = ROCE_MAX_MCAST,
        /* The engine limits attachments in all, be it of one queue pair or of one group. */
        .max_mcast_qp_attach = ROCE_MAX_MCAST,
        .max_total_mcast_qp_attach = ROCE_MAX_MCAST,
        .max_ah = HCA_MAX_AH,
        .max_srq = HCA_MAX_SRQ,
        .max_srq_wr = HCA_MAX_WR,
        .max_srq_sge = ROCE_MAX_SGE,
        .max_pkeys = 1,
        .local_ca_ack_delay = 15,
        .phys_port_cnt = 1,
    };
    snprintf(a->fw_ver, sizeof(a->fw_ver), "tributary");
    return 0;
}

/* IB_UVERBS_DEVICE_ATOMIC_WRITE of Linux; later versions of libibverbs' header have a name for it.
 */
#define ATOMIC_WRITE_CAP (1ull << 40)

int hca_query_device_ex(struct ibv_context *v, const struct ibv_query_device_ex_input *in,
                        struct ibv_device_attr_ex *a, size_t size)
{
    struct ibv_device_attr_ex full = {.comp_mask = 0};

    if (in && in->comp_mask)
        return EINVAL;
    if (size < sizeof(full.orig_attr))
        return EINVAL;
    hca_query_device(v, &full.orig_attr);
    /* Timestamps of completions are fabric time in ns. */
    full.completion_timestamp_mask = UINT64_MAX;
    full.hca_core_clock = 1000000; /* kHz */
    full.device_cap_flags_ex = full.orig_attr.device_cap_flags | ATOMIC_WRITE_CAP;
    full.max_dm_size = HCA_MAX_DM;
    odp_caps(hca_ctx_of(v)->hca, &full.odp_caps);
    full.phys_port_cnt_ex = 1;
    memset(a, 0, size);
    memcpy(a, &full, size < sizeof(full) ? size : sizeof(full));
    return 0;
}

int hca_query_rt_values(struct ibv_context *v, struct ibv_values_ex *values)
{
    struct hca *h = hca_ctx_of(v)->hca;
    uint32_t asked = values->comp_mask;

    values->comp_mask = asked & IBV_VALUES_MASK_RAW_CLOCK;
    if (!values->comp_mask)
        return 0;
    hca_lock(h);
    hca_kick(h); /* updates h->now_ps, also of an idle HCA */
    values->raw_clock.tv_sec = h->now_ps / PS_PER_S;
    values->raw_clock.tv_nsec = h->now_ps % PS_PER_S / PS_PER_NS;
    hca_unlock(h);
    return 0;
}

/* ---- port ---- */

/* Width and speed codes (IBTA 14.2.5.6) whose product is the port's rate or the next below. */
static void width_and_speed(uint64_t bps, uint8_t *width, uint8_t *speed)
{
    static const struct {
        uint32_t gbps;
        uint8_t width, speed;
    } rows[] = {
        {1200, 8, 128}, {800, 4, 128}, {400, 2, 128}, {200, 2, 64}, {100, 2, 32}, {56, 2, 16},
        {40, 2, 8},     {25, 1, 32},   {20, 2, 2},    {10, 1, 8},   {0, 1, 1},
    };
    size_t i = 0;

    while (bps < rows[i].gbps * 1000000000ull)
        i++;
    *width = rows[i].width, *speed = rows[i].speed;
}

int hca_query_port(struct ibv_context *v, uint8_t port, struct ibv_port_attr *a, size_t size)
{
    struct hca *h = hca_ctx_of(v)->hca;
    struct ibv_port_attr full = {
        .state = h->port_up && !h->dead ? IBV_PORT_ACTIVE : IBV_PORT_DOWN,
        .max_mtu = IBV_MTU_4096,
        .active_mtu = mtu_enum(h->cfg.mtu),
        .gid_tbl_len = HCA_GIDS,
        .port_cap_flags = HCA_PORT_CAPS,
        .max_msg_sz = ROCE_MAX_MSG,
        .pkey_tbl_len = 1,
        .max_vl_num = 1,
        .phys_state = h->port_up ? 5 : 3, /* link up, disabled */
        .link_layer = IBV_LINK_LAYER_ETHERNET,
    };

    if (port != HCA_PORT)
        return EINVAL;
    width_and_speed(h->cfg.rate_bps, &full.active_width, &full.active_speed);
    memset(a, 0, size);
    memcpy(a, &full, size < sizeof(full) ? size : sizeof(full));
    return 0;
}

/* For programs that were built before struct ibv_port_attr grew. */
int hca_query_port_compat(struct ibv_context *v, uint8_t port, struct _compat_ibv_port_attr *a)
{
    return hca_query_port(v, port, (struct ibv_port_attr *)a,
                          offsetof(struct ibv_port_attr, port_cap_flags2));
}

/* ---- exported ---- */

EXPORT __be64 ibv_get_device_guid(struct ibv_device *d)
{
    if (!hca_device_ours(d))
        return REAL(ibv_get_device_guid)(d);
    return guid_of(((struct hca_device *)d)->ip);
}

EXPORT int ibv_query_device(struct ibv_context *v, struct ibv_device_attr *a)
{
    return hca_ctx_of(v) ? hca_query_device(v, a) : REAL(ibv_query_device)(v, a);
}

EXPORT int ibv_query_port(struct ibv_context *v, uint8_t port, struct _compat_ibv_port_attr *a)
{
    return hca_ctx_of(v) ? hca_query_port_compat(v, port, a) : REAL(ibv_query_port)(v, port, a);
}

EXPORT int ibv_query_gid(struct ibv_context *v, uint8_t port, int index, union ibv_gid *gid)
{
    struct hca_ctx *c = hca_ctx_of(v);

    if (!c)
        return REAL(ibv_query_gid)(v, port, index, gid);
    if (port != HCA_PORT || (unsigned)index >= HCA_GIDS) {
        errno = EINVAL;
        return -1;
    }
    addr_gid(c->hca->cfg.ip, (unsigned)index, gid);
    return 0;
}

EXPORT int _ibv_query_gid_ex(struct ibv_context *v, uint32_t port, uint32_t index,
                             struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
    struct hca_ctx *c = hca_ctx_of(v);
    struct ibv_gid_entry full = {
        .gid_index = index, .port_num = port, .gid_type = IBV_GID_TYPE_ROCE_V2};

    if (!c)
        return REAL(_ibv_query_gid_ex)(v, port, index, entry, flags, size);
    if (flags || port != HCA_PORT)
        return EINVAL;
    if (index >= HCA_GIDS)
        return ENODATA;
    addr_gid(c->hca->cfg.ip, index, &full.gid);
    memset(entry, 0, size);
    memcpy(entry, &full, size < sizeof(full) ? size : sizeof(full));
    return 0;
}

EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *v, struct ibv_gid_entry *entries,
                                    size_t max, uint32_t flags, size_t size)
{
    if (!hca_ctx_of(v))
        return REAL(_ibv_query_gid_table)(v, entries, max, flags, size);
    if (flags || max < HCA_GIDS)
        return -EINVAL;
    for (uint32_t i = 0; i < HCA_GIDS; i++)
        if (_ibv_query_gid_ex(v, HCA_PORT, i, (void *)((char *)entries + i * size), 0, size))
            return -EIO;
    return HCA_GIDS;
}

/* Private to rdma-core, but ibv_devinfo calls it. *type 1: RoCE v2. */
int ibv_query_gid_type(struct ibv_context *v, uint8_t port, unsigned int index, int *type);

EXPORT int ibv_query_gid_type(struct ibv_context *v, uint8_t port, unsigned int index, int *type)
{
    if (!hca_ctx_of(v))
        return REAL(ibv_query_gid_type)(v, port, index, type);
    if (port != HCA_PORT || index >= HCA_GIDS) {
        errno = EINVAL;
        return -1;
    }
    *type = 1;
    return 0;
}

EXPORT int ibv_query_pkey(struct ibv_context *v, uint8_t port, int index, __be16 *pkey)
{
    if (!hca_ctx_of(v))
        return REAL(ibv_query_pkey)(v, port, index, pkey);
    if (port != HCA_PORT || index) {
        errno = EINVAL;
        return -1;
    }
    *pkey = htobe16(HCA_PKEY);
    return 0;
}

EXPORT int ibv_get_pkey_index(struct ibv_context *v, uint8_t port, __be16 pkey)
{
    if (!hca_ctx_of(v))
        return REAL(ibv_get_pkey_index)(v, port, pkey);
    if (port == HCA_PORT && be16toh(pkey) == HCA_PKEY)
        return 0;
    errno = EINVAL;
    return -1;
}
