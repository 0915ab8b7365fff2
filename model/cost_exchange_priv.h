/* SPDX-License-Identifier: BSD-3-Clause */
/* State of an exchange that is being walked. cost_exchange.c sets it up, cost_exchange_ends.c runs
 * ranks and servers, cost_exchange_switch.c runs switches. */
#ifndef TRIB_MODEL_COST_EXCHANGE_PRIV_H
#define TRIB_MODEL_COST_EXCHANGE_PRIV_H

#include "model/cost_exchange.h"
#include "model/cost_model.h"

#define PASSED 4 /* blocks that an aggregator remembers (protocols/atp_switch.c) */

/* A FIFO of blocks, with room for as many as can wait. */
struct exchange_ring {
    uint32_t *block, room, head, n;
};

/* Bits in exchange_rank.of: whether the rank has the block's result, and where its own part is. */
enum exchange_of {
    OF_RESULT = 1, /* the rank has the result */
    OF_POSTED = 2, /* its part has been sent, to another rank */
    OF_AGAIN = 4,  /* its part is being sent again, with RESEND */
    OF_HELD = 8,   /* its part waits in an aggregator */
    OF_PASSED = 16 /* its part is at the server, or on its way there from the first switch */
};

/* A rank's state of one server, as in tributary/window.h. */
struct exchange_lane {
    uint32_t oldest, later; /* oldest block without a result; results of later blocks */
};

/* A part that has been sent. */
struct exchange_flight {
    int64_t sent_ps, due_ps;
};

struct exchange_rank {
    unsigned leaf;              /* index of its first switch */
    struct exchange_ring parts; /* own parts to send */
    struct exchange_ring owed;  /* results to send, as a server */
    unsigned paid;              /* destinations to which the first result has been sent */
    uint32_t next, busy, results, out;
    uint32_t end; /* the block after the last one of the rank's present operation */
    bool pumping;
    int64_t fetch_ps;
    struct fab_notice notice;
    int64_t short_free_ps, noticed_ps; /* as model_lane.free_ps, .noticed_ps */
    uint8_t *of;                       /* [blocks] enum exchange_of */
    struct exchange_lane *lane;        /* [servers]; NULL without aggregators, as nothing is lost */
    struct exchange_flight *flight;    /* [in_flight] by block; NULL likewise */
    /* As in tributary/window.h. */
    int64_t timer_ps, heard_ps, quick_ps[2];
    uint32_t samples;
};

struct aggregator {
    uint32_t block, parts;
    bool used;
    int64_t since_ps;
    uint32_t passed[PASSED], n_passed; /* the latest at n_passed - 1, modulo PASSED */
};

struct exchange_leaf {
    uint16_t node;
    unsigned first, n;       /* its lowest rank; ranks below */
    struct aggregator *slot; /* [aggregators] */
};

struct model_exchange {
    const struct trib_exchange *x; /* blocks: of all operations */
    uint32_t op_blocks;            /* of one */
    int64_t *op_end_ps;            /* when all ranks have each one's results; or NULL */
    const struct exchange_on *on;
    unsigned n_leaves, ended;
    uint32_t in_flight; /* most blocks of a rank in flight */
    int64_t timeout_ps;
    uint64_t resends, most_resends; /* after timeouts */
    struct exchange_rank *rank;
    struct exchange_leaf *leaf;
    uint16_t *seen;           /* [blocks] parts that the server has */
    struct model_path **path; /* [ends][ends] of ranks, then leaves; NULL: not asked for yet */
    struct model_part *fetch; /* [nranks][PROTOCOL_SENDS] posted, and not fetched yet */
    uint32_t *fetched;        /* [nranks] */
    uint32_t *posted;         /* [nranks] */
};

/* What a packet is, in model_part.edge. */
enum exchange_kind { TO_SWITCH, TO_SERVER, RESULT_TO_SWITCH, RESULT_TO_RANK };

unsigned exchange_server(const struct model_exchange *e, uint32_t block);
/* A packet of a block from one end to another. */
struct model_part exchange_packet(struct model *m, enum exchange_kind kind, uint32_t block,
                                  unsigned from, unsigned to);
void exchange_send(struct model *m, struct model_part *p, int64_t now);

/* A rank's part of a block, or a block's result, arrives at a first switch. */
void exchange_part_at_switch(struct model *m, unsigned rank, uint32_t block, bool again,
                             int64_t now);
void exchange_result_at_switch(struct model *m, unsigned leaf, uint32_t block, int64_t now);

/* Sends each rank's first window. */
void exchange_begin(struct model *m);
/* Lanes of EV_TRY. */
enum { EXCHANGE_FETCHED, EXCHANGE_TIMER };

/* A rank's timer is due: sends overdue parts again. */
void exchange_timer(struct model *m, unsigned rank, int64_t now);
/* A rank's HCA has fetched the oldest posted request, and sends it. */
void exchange_fetched(struct model *m, unsigned rank, int64_t now);

#endif
