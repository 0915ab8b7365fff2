/* Inside of a world: its ranks and their ports; for sim/world*.c only. */
#ifndef TRIB_SIM_WORLD_PRIV_H
#define TRIB_SIM_WORLD_PRIV_H

#include "sim/world.h"

struct rank;

/* A port of the rank's host, with the software HCA on it. */
struct rank_port {
    struct endpoint ep; /* the HCA's own; the net sees the wrappers below */
    struct hca *hca;
    uint64_t seen; /* of its news */
    bool kicked;
    bool waits;    /* somebody waits for a slow one */
    uint32_t slow; /* so many times slower than its port; 0: not */
    struct rank *r;
    unsigned index; /* of the host's ports */
    /* A slow one: since when it can take and give the next frame. */
    int64_t takes_ps, gives_ps;
} __rte_cache_aligned;

struct rank {
    struct world *w;
    struct rank_port *port; /* [n_ports] */
    struct ibv_context **ctx;
    unsigned n_ports;
    uint16_t node;
    unsigned slot;
    unsigned index;
    bool dead, awaited;
    uint64_t waiting; /* bit of each port: see world_waiting() */
};

struct world {
    struct world_cfg cfg;
    struct net *net;
    struct rank *ranks;
    struct rank_port **kicked; /* in the order in which they were */
    unsigned n_kicked;
    uint64_t *awake;   /* [nranks / 64 + 1] a bit a rank */
    uint64_t *wakers;  /* [nranks / 4096 + 1] a bit a word of awake that is not 0 */
    unsigned *awaited; /* [n_nodes + 1] ranks that are; the last: all together */
    int64_t now;
    uint64_t mapped;
    int64_t alarm_ps;
    void (*alarm)(void *ctx);
    void *alarm_ctx;
    unsigned busy_an; /* a node that was busy when last asked */
    uint64_t hash, frames;
    int64_t lookahead_ps;    /* of the net; 0: it has none */
    void (*turn)(void *ctx); /* of a slice: what ranks do */
    void *turn_ctx;
};

#endif
