/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A load is one RDMA READ: the switch cuts it into slices itself, and the HCA bounds the
 * outstanding READs. A store is cut into pieces here, because the switch takes no more than a
 * window of slices from a member at a time: beyond it the switch sends an RNR NAK, which costs a
 * round trip.
 */
#include "host/coll/transport/mm_member.h"

#include "base/assert.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEND_WRS    128u
#define PIECE       (4 * MM_SLICE)
#define RNR_RETRIES 7 /* without end */
#define RNR_TIMER   1 /* 10 us: over the window, which members keep to */
#define HOP_LIMIT   64
#define TRIES       10 /* of a MOVE; the switch answers at once if it is there */

struct mmc {
    struct mmc_cfg cfg;
    enum mmc_state state;
    char error[MMC_TEXT];
    enum agg_status status; /* why, by the switch's word */
    struct ibv_qp *qp;
    uint32_t psn, xid;
    bool granted, left;
    uint64_t base;
    uint32_t rkey, window; /* slices of stores */
    struct mm_ctl move;    /* the last MOVE, for repetition */
    bool moving;
    unsigned tries;

    struct mmc_step step[MMC_STEPS]; /* ring: [done, posted) */
    uint64_t posted, done;
    uint64_t at; /* step whose pieces are being posted, and how far */
    uint32_t at_off;
    struct {
        uint16_t slices; /* of a store */
        bool last;       /* of its step */
    } wr[SEND_WRS];      /* ring: [wr_done, wr_posted) */
    uint32_t wr_posted, wr_done, slices;
};

static const char *const state_names[] = {[MMC_OPENING] = "opening",
                                          [MMC_READY] = "ready",
                                          [MMC_FAILED] = "failed",
                                          [MMC_CLOSING] = "closing",
                                          [MMC_CLOSED] = "closed"};

/* CLOSED is final (mm_member.h has the transitions). */
static void set_state(struct mmc *m, enum mmc_state state)
{
    T_ASSERT(m->state != MMC_CLOSED, "a multimem member that is closed changes its state");
    m->state = state;
    T_LOG("coll", LOG_DEBUG, "multimem at %s, member %u: %s", m->cfg.name, m->cfg.member,
          state_names[state]);
}

/* ---- control ---- */

static void member_fail(struct mmc *m, const char *why, const char *text)
{
    if (m->state == MMC_FAILED || m->state == MMC_CLOSED)
        return;
    set_state(m, MMC_FAILED);
    m->moving = false;
    snprintf(m->error, sizeof(m->error), "%s: %s%s%s", m->cfg.name, why, text[0] ? ": " : "", text);
    qp_stop(m->qp);
}

static void control_send(struct mmc *m, enum agg_type type, uint32_t xid)
{
    struct mm_ctl c = {
        .magic = RTE_BE32(AGG_MAGIC),
        .version = AGG_VERSION,
        .type = (uint8_t)type,
        .xid = rte_cpu_to_be_32(xid),
        .group = rte_cpu_to_be_32(m->cfg.group),
        .key = rte_cpu_to_be_64(m->cfg.key),
        .members = rte_cpu_to_be_16((uint16_t)m->cfg.members),
        .member = rte_cpu_to_be_16((uint16_t)m->cfg.member),
        .mtu = rte_cpu_to_be_16((uint16_t)m->cfg.port->mtu),
        .qpn = rte_cpu_to_be_32(m->qp->qp_num),
        .psn = rte_cpu_to_be_32(m->psn),
        .reads = RTE_BE32(MM_READS),
    };

    m->cfg.say(m->cfg.ctx, &c);
}

static int to_init(struct mmc *m)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = m->cfg.port->num,
                               .qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                                                  IBV_ACCESS_REMOTE_WRITE};

    return ibv_modify_qp(m->qp, &attr,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static enum ibv_mtu mtu_code(uint32_t bytes)
{
    enum ibv_mtu c = IBV_MTU_256;

    while (c < IBV_MTU_4096 && (256u << c) <= bytes)
        c++;
    return c;
}

static int connect_qp(struct mmc *m, const struct mm_ctl *c)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = mtu_code(m->cfg.port->mtu),
        .dest_qp_num = rte_be_to_cpu_32(c->qpn),
        .rq_psn = rte_be_to_cpu_32(c->psn),
        .max_dest_rd_atomic = MM_READS,
        .min_rnr_timer = RNR_TIMER,
        .ah_attr = {.is_global = 1,
                    .port_num = m->cfg.port->num,
                    .grh = {.dgid = m->cfg.gid,
                            .sgid_index = m->cfg.port->gid_index,
                            .hop_limit = HOP_LIMIT}},
    };
    uint32_t reads = rte_be_to_cpu_32(c->reads);
    int rc = ibv_modify_qp(m->qp, &attr,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                               IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);

    if (rc)
        return rc;
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS,
        .sq_psn = m->psn,
        .timeout = m->cfg.port->ack_timeout,
        .retry_cnt = m->cfg.port->retry_count,
        .rnr_retry = RNR_RETRIES,
        .max_rd_atomic = (uint8_t)(reads < MM_READS ? reads : MM_READS),
    };
    return ibv_modify_qp(m->qp, &attr,
                         IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                             IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

static const char *status_text(const struct mm_ctl *c)
{
    enum agg_status st = rte_be_to_cpu_16(c->status);

    return st < AGG_STATUS_COUNT ? agg_status_text(st) : "unknown status";
}

/* The switch's text, if it says more than the status; else "". */
static const char *more_text(const struct mm_ctl *c, char *buf)
{
    memcpy(buf, c->text, sizeof(c->text));
    buf[sizeof(c->text) - 1] = '\0';
    return strcmp(buf, status_text(c)) ? buf : "";
}

static void member_refused(struct mmc *m, const struct mm_ctl *c, const char *text)
{
    if (m->state != MMC_FAILED && m->state != MMC_CLOSED)
        m->status = rte_be_to_cpu_16(c->status);
    member_fail(m, status_text(c), text);
}

/* A member that was bound is unknown: the switch has forgotten the group. */
static void group_forgotten(struct mmc *m, const struct mm_ctl *c, const char *text)
{
    member_refused(m, c, text);
    if (m->status == AGG_E_NOT_MEMBER)
        m->status = AGG_E_NO_GROUP;
}

static void on_bind_reply(struct mmc *m, const struct mm_ctl *c)
{
    char text[sizeof(c->text)];
    int rc;

    if (m->granted || m->state != MMC_OPENING)
        return;
    if (c->status) {
        m->left = true; /* no grant to return */
        member_refused(m, c, more_text(c, text));
        return;
    }
    m->base = rte_be_to_cpu_64(c->va);
    m->rkey = rte_be_to_cpu_32(c->rkey);
    m->window = rte_be_to_cpu_32(c->write_slices);
    m->granted = true;
    rc = connect_qp(m, c);
    if (rc || m->window < PIECE / MM_SLICE)
        member_fail(m, "cannot connect", rc ? strerror(rc) : "window is less than a piece");
    else
        control_send(m, AGG_MM_READY, m->xid);
}

void mmc_input(struct mmc *m, const struct mm_ctl *c)
{
    char text[sizeof(c->text)];

    if (c->version != AGG_VERSION || rte_be_to_cpu_32(c->group) != m->cfg.group ||
        rte_be_to_cpu_16(c->member) != m->cfg.member)
        return;
    switch ((enum agg_type)c->type) {
    case AGG_MM_BIND_REPLY:
        on_bind_reply(m, c);
        break;
    case AGG_MM_READY_REPLY:
        if (c->status)
            group_forgotten(m, c, "");
        else if (m->state == MMC_OPENING && m->granted)
            set_state(m, MMC_READY);
        break;
    case AGG_MM_MOVE_REPLY:
        if (!m->moving || c->xid != m->move.xid)
            break;
        m->moving = false;
        if (c->status)
            group_forgotten(m, c, more_text(c, text));
        break;
    case AGG_MM_UNBIND_REPLY:
        m->left = true;
        if (m->state == MMC_CLOSING)
            set_state(m, MMC_CLOSED);
        break;
    case AGG_MM_ABORT:
        control_send(m, AGG_MM_ABORT_ACK, rte_be_to_cpu_32(c->xid));
        if (m->state != MMC_CLOSING)
            member_refused(m, c, more_text(c, text));
        break;
    default:
        break;
    }
}

void mmc_repeat(struct mmc *m)
{
    if (m->state == MMC_OPENING)
        control_send(m, m->granted ? AGG_MM_READY : AGG_MM_BIND, m->xid);
    else if (m->state == MMC_CLOSING)
        control_send(m, AGG_MM_UNBIND, m->xid);
    if (m->moving)
        m->cfg.say(m->cfg.ctx, &m->move);
}

void mmc_tick(struct mmc *m)
{
    if (m->moving && m->tries++ == TRIES)
        member_fail(m, "does not answer any more", "");
    mmc_repeat(m);
}

int mmc_move(struct mmc *m, uint8_t area, uint64_t addr, uint64_t length, uint32_t rkey)
{
    if (m->state != MMC_READY)
        return -ENOTCONN;
    if (m->moving)
        return -EBUSY;
    m->move = (struct mm_ctl){
        .magic = RTE_BE32(AGG_MAGIC),
        .version = AGG_VERSION,
        .type = AGG_MM_MOVE,
        .xid = rte_cpu_to_be_32(++m->xid),
        .group = rte_cpu_to_be_32(m->cfg.group),
        .key = rte_cpu_to_be_64(m->cfg.key),
        .members = rte_cpu_to_be_16((uint16_t)m->cfg.members),
        .member = rte_cpu_to_be_16((uint16_t)m->cfg.member),
        .area = area,
        .va = rte_cpu_to_be_64(addr),
        .length = rte_cpu_to_be_64(length),
        .rkey = rte_cpu_to_be_32(rkey),
    };
    m->moving = true;
    m->tries = 0;
    m->cfg.say(m->cfg.ctx, &m->move);
    return 0;
}

bool mmc_moving(const struct mmc *m)
{
    return m->moving;
}

/* ---- steps ---- */

static uint32_t slices_of(uint32_t len)
{
    return len ? (len - 1) / MM_SLICE + 1 : 1;
}

/* Posts the next piece of the current step; false: the send queue or the window is full. */
static bool post_piece(struct mmc *m)
{
    const struct mmc_step *s = &m->step[m->at % MMC_STEPS];
    uint32_t left = s->len - m->at_off, len = s->store && left > PIECE ? PIECE : left;
    uint32_t slices = s->store ? slices_of(len) : 0;
    struct mm_what what = s->what;
    struct ibv_sge sge = {.addr = (uintptr_t)s->local + m->at_off, .length = len, .lkey = s->lkey};
    struct ibv_send_wr wr = {.wr_id = m->cfg.wr_tag | m->wr_posted,
                             .sg_list = &sge,
                             .num_sge = len ? 1 : 0,
                             .opcode = s->store ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    int rc;

    if (m->wr_posted - m->wr_done == SEND_WRS || m->slices + slices > m->window)
        return false;
    what.off += m->at_off;
    wr.wr.rdma.remote_addr = mm_addr(m->base, &what);
    wr.wr.rdma.rkey = m->rkey;
    rc = ibv_post_send(m->qp, &wr, &bad);
    if (rc) {
        member_fail(m, "cannot post", strerror(rc));
        return false;
    }
    m->slices += slices;
    m->wr[m->wr_posted % SEND_WRS].slices = (uint16_t)slices;
    m->wr[m->wr_posted % SEND_WRS].last = len == left;
    m->wr_posted++;
    m->at_off += len;
    if (len == left)
        m->at++, m->at_off = 0;
    return true;
}

static void pieces_pump(struct mmc *m)
{
    while (m->state == MMC_READY && m->at < m->posted && post_piece(m))
        ;
}

int mmc_post(struct mmc *m, const struct mmc_step *s)
{
    if (m->state != MMC_READY)
        return -ENOTCONN;
    if (m->posted - m->done == MMC_STEPS)
        return -EAGAIN;
    m->step[m->posted++ % MMC_STEPS] = *s;
    pieces_pump(m);
    return 0;
}

uint64_t mmc_posted(const struct mmc *m)
{
    return m->posted;
}

uint64_t mmc_done(const struct mmc *m)
{
    return m->done;
}

void mmc_complete(struct mmc *m, const struct ibv_wc *wc)
{
    if (m->state != MMC_READY)
        return;
    if (wc->status != IBV_WC_SUCCESS) {
        member_fail(m, ibv_wc_status_str(wc->status), "");
        return;
    }
    T_ASSERT_HOT(m->wr_done != m->wr_posted, "a request completes that was not posted");
    T_ASSERT_HOT(m->slices >= m->wr[m->wr_done % SEND_WRS].slices, "more slices end than began");
    T_ASSERT_HOT(m->done <= m->at && m->at <= m->posted, "a step ends before it was posted");
    m->slices -= m->wr[m->wr_done % SEND_WRS].slices;
    m->done += m->wr[m->wr_done % SEND_WRS].last;
    m->wr_done++;
    pieces_pump(m);
}

/* ---- life ---- */

enum mmc_state mmc_state(const struct mmc *m)
{
    return m->state;
}

const char *mmc_error(const struct mmc *m)
{
    return m->error;
}

enum agg_status mmc_status(const struct mmc *m)
{
    return m->status;
}

void mmc_stop(struct mmc *m)
{
    if (m->state == MMC_OPENING || m->state == MMC_READY)
        member_fail(m, "stopped", "");
}

void mmc_close(struct mmc *m)
{
    if (m->state == MMC_CLOSING || m->state == MMC_CLOSED)
        return;
    set_state(m, m->left ? MMC_CLOSED : MMC_CLOSING);
    m->moving = false;
    qp_stop(m->qp);
    if (m->state == MMC_CLOSING)
        control_send(m, AGG_MM_UNBIND, m->xid);
}

int mmc_create(struct mmc **out, const struct mmc_cfg *cfg)
{
    struct mmc *m = calloc(1, sizeof(*m));
    struct ibv_qp_init_attr init = {
        .send_cq = cfg->port->cq,
        .recv_cq = cfg->port->cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = SEND_WRS, .max_send_sge = 1, .max_recv_wr = 1, .max_recv_sge = 1},
    };
    int rc;

    if (!m)
        return -ENOMEM;
    m->cfg = *cfg;
    m->xid = 1;
    m->qp = ibv_create_qp(cfg->port->pd, &init);
    if (!m->qp) {
        rc = errno;
        free(m);
        return -rc;
    }
    m->psn = (m->qp->qp_num * 2654435761u ^ (uint32_t)cfg->key) & 0xffffff;
    rc = to_init(m);
    if (rc) {
        mmc_destroy(m);
        return -rc;
    }
    control_send(m, AGG_MM_BIND, m->xid);
    *out = m;
    return 0;
}

void mmc_destroy(struct mmc *m)
{
    if (!m)
        return;
    if (m->qp)
        ibv_destroy_qp(m->qp);
    free(m);
}
