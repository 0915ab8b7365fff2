/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A member's end of multimem at one NVSwitch plane (aggregation/mm_proto.h): plain verbs on a
 * port of that plane. Memory is bound to areas of the group's region; steps read the reduction of
 * all members' memory (load) or write to all members' memory (store), and are done in the order in
 * which they were posted.
 *
 * The caller hands control messages of this group to mmc_input() and completions of wr_tag to
 * mmc_complete(), and calls mmc_tick() every 200 ms while mmc_state() is not MMC_READY or a move or
 * close is under way; datagrams go out by cfg.say(). No member may post a step on memory of an area
 * before all members have bound theirs and its contents are valid (a barrier), nor use or move its
 * own memory again before all members' steps are done (another barrier): mm_proto.h.
 *
 *   OPENING --all members are ready--> READY --mmc_close()--> CLOSING --> CLOSED
 *      +---- refused, aborted, a request failed ----> FAILED --mmc_close()--> CLOSED
 */
#ifndef TRIB_HOST_COLL_TRANSPORT_MM_MEMBER_H
#define TRIB_HOST_COLL_TRANSPORT_MM_MEMBER_H

#include "aggregation/mm_proto.h"
#include "host/coll/transport/edge.h"

#include <stddef.h>

#define MMC_TEXT  256
#define MMC_STEPS 256u /* posted and not done, at most */

struct mmc;

enum mmc_state { MMC_OPENING, MMC_READY, MMC_FAILED, MMC_CLOSING, MMC_CLOSED };

struct mmc_cfg {
    struct port *port; /* of the plane */
    union ibv_gid gid; /* the switch's */
    const char *name;  /* of it, for people; outlives the mmc */
    uint32_t group;
    uint64_t key;
    unsigned member, members;
    uint64_t wr_tag; /* upper bits of every wr_id; the lower 32 are ours */
    void (*say)(void *ctx, const struct mm_ctl *m); /* datagram to AGG_QPN of the switch; may be
                                                       lost */
    void *ctx;
};

/* Makes the queue pair and sends the first BIND. 0 or -errno. */
int mmc_create(struct mmc **m, const struct mmc_cfg *cfg);
/* May be called at any time; steps that are posted do not complete. */
void mmc_destroy(struct mmc *m);
enum mmc_state mmc_state(const struct mmc *m);
const char *mmc_error(const struct mmc *m); /* FAILED: switch, member and reason */
/* FAILED: the status that the switch reported; AGG_OK: none. */
enum agg_status mmc_status(const struct mmc *m);

/* Binds memory (of a region registered for remote READ and WRITE) to an area, instead of the memory
 * bound before. 0; -EBUSY: another move is under way. mmc_moving() is true until the switch has
 * answered. */
int mmc_move(struct mmc *m, uint8_t area, uint64_t addr, uint64_t length, uint32_t rkey);
bool mmc_moving(const struct mmc *m);

struct mmc_step {
    bool store;          /* else load */
    struct mm_what what; /* area, offset and window; load: operation and type */
    void *local;
    uint32_t lkey, len;
};
/* 0; -EAGAIN: MMC_STEPS are under way; -ENOTCONN: not READY. */
int mmc_post(struct mmc *m, const struct mmc_step *s);
uint64_t mmc_posted(const struct mmc *m); /* steps, since creation */
uint64_t mmc_done(const struct mmc *m);

void mmc_input(struct mmc *m, const struct mm_ctl *c);
void mmc_complete(struct mmc *m, const struct ibv_wc *wc);
void mmc_repeat(struct mmc *m); /* repeats requests that were not answered */
void mmc_tick(struct mmc *m);   /* the same, and fails when the switch does not answer */
/* This member's memory is no longer read or written; a READY member becomes FAILED. The switch is
 * not notified. */
void mmc_stop(struct mmc *m);
/* Leaves the group. */
void mmc_close(struct mmc *m);

#endif
