/* Inside of the cost model; for host/coll/model*.c only. Times in ps, as int64. */
#ifndef TRIB_COLL_MODEL_H
#define TRIB_COLL_MODEL_H

#include "host/coll/comm.h"

#define MODEL_HOPS 32

struct model_path {
    unsigned n;
    uint32_t link[MODEL_HOPS];
};

struct model {
    const struct fabric *fab;
    struct sched_in in; /* rank is filled in by turns */
    const uint16_t *host_of_rank;
    /* Directions of links, then the hosts' loops: ranks of one host meet in its NIC. */
    unsigned n_dir;
    uint32_t *data, *acks; /* [n_dir] data flows, and flows whose ACKs pass here */
    int64_t *free_ps;      /* [n_dir] when the link is free */
    double *bytes;         /* [n_dir] that pass in the whole operation */
};

/* A message of len bytes as frames: bytes of link time (layer 2, and preamble, FCS and gap), of its
 * largest and its last frame. */
struct model_msg {
    uint64_t wire, frame, tail;
};
struct model_msg model_message(uint64_t len, uint32_t mtu, bool imm);
/* Ethernet 14, IP 20, UDP 8, BTH 12, AETH 4, ICRC 4, and 24 of the link. One a message is counted.
 */
#define MODEL_ACK_WIRE 86ULL

int64_t model_ps(const struct model *m, uint32_t dirlink, uint64_t bytes);
int64_t model_latency(const struct model *m, uint32_t dirlink);
void model_path(const struct fabric *fab, uint16_t from, uint16_t to, struct model_path *p);
uint16_t model_node(const struct model *m, unsigned rank);
/* Hand-offs from one trib-switch process to another along a path that starts at node `from`. */
unsigned model_crossings(const struct fabric *fab, uint16_t from, const struct model_path *p);

int model_ring(struct model *m, struct coll_prediction *p);
int model_sharp(struct model *m, uint16_t tree, uint32_t window, struct coll_prediction *p);

#endif
