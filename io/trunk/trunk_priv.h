/* SPDX-License-Identifier: BSD-3-Clause */
/* Internals of trunk.h. A thread holds trunk.lock while it uses any of this state. */
#ifndef TRIB_IO_TRUNK_TRUNK_PRIV_H
#define TRIB_IO_TRUNK_TRUNK_PRIV_H

#include "io/port/port.h"
#include "machine/shared.h"
#include "io/trunk/trunk.h"
#include "io/trunk/trunk_follow.h"
#include "io/trunk/trunk_session.h"
#include "io/trunk/trunk_wire.h"
#include "machine/watch.h"

#include <netinet/in.h>
#include <pthread.h>
#include <sys/uio.h>

#define TRUNK_STATE_NS   50000000   /* interval of states to each machine */
#define TRUNK_SILENT_NS  2500000000 /* a machine that has not answered for so long is gone */
#define TRUNK_BURST      32u
#define TRUNK_ORDER_TEXT 512u
#define TRUNK_BACKLOG    1024u /* frames that wait until a switch process has room */

struct trunk_peer {
    struct sockaddr_in at;
    struct trunk_session session;
    bool other_conf, other_version;
    bool odd;          /* it has sent impossible values in this session */
    bool noted;        /* the run directory lists it as present */
    bool far;          /* its clock and ours do not agree; its links stay down */
    int64_t near_ns;   /* when the clocks last agreed */
    int64_t proven_ns; /* when we sent the state that it answered last: it was alive then */
    int64_t sent_ns;   /* when we last sent it a state or a HELLO */
    int64_t asks_ns;   /* since when it has no session */
    uint64_t cuts_seq; /* number of its last TRUNK_CUTS */
    struct follow follow;
    struct trunk_state state; /* its last state, in host order */
    int64_t state_ns;         /* arrival time of that state */
    uint8_t *ends;            /* bit trunk_end.bit: the switch process at its end runs */
    uint8_t *cuts;            /* bit per link: it says that the link is cut */
    uint16_t n_ends;
    uint32_t order; /* number of its last order that was carried out here */
    uint64_t
        told_in; /* our nonce of the session in which it was sent the present order; 0: not yet */
    uint64_t received, sent, send_failed;
    struct { /* trunk_carrier.c */
        uint8_t mac[6];
        bool hears_us;
        int64_t heard_ns, used_ns; /* when we last heard its port; when we last sent it frames */
        uint64_t sent, received;
    } by_port;
};

/* A link to another machine. For the switch process of node `near` the trunk stands in for node `far`. */
struct trunk_end {
    uint16_t link, near, far;
    uint16_t bit; /* index in trunk_state's bits of ends, the same on both machines */
    uint8_t peer;
    bool is_a; /* `far` is end a of the link, and therefore the listener */
    bool up;
    struct io_port *rp; /* NULL: closed */
    struct port_page *page;
    const struct switch_view *view;
    _Atomic uint32_t rung;
    bool ring;
    struct flow_out out;
    struct flow_in in;
    struct rte_mbuf **wait; /* ring of TRUNK_BACKLOG */
    uint16_t wait_head, wait_n;
    uint64_t sent, received, again, overflow;
};

struct trunk {
    struct trunk_cfg cfg;
    const struct fabric *fab;
    unsigned me, n;
    pthread_mutex_t lock;
    struct trunk_seal *seal;
    int fd;
    uint64_t conf;
    struct trunk_peer *peer; /* [n]; that of `me` is not used */
    uint64_t refused[TRUNK_REFUSALS];
    bool no_nonce;     /* the kernel has no random numbers, and the log says so */
    struct shared *sh; /* NULL until the machines have agreed on the clock */
    struct trunk_end *end;
    struct watch watch; /* of the ports of end[] */
    unsigned n_ends;
    struct rte_mempool *pool;
    struct carrier *carrier; /* NULL: UDP carries the frames */
    /* the clock */
    bool has_clock;
    unsigned owner;
    struct clock_state owner_was; /* the owner's line that ours follows */
    uint32_t dilation; /* the owner's, or the one asked for; our line may deviate to catch up */
    int64_t began_ns, looked_ns;
    int64_t wakes_ns; /* when the thread on the bell will wake without being rung */
    /* lateness */
    int64_t late_ns, lag_sent_ns; /* of local processes since the last state; last TRUNK_LAG */
    struct lag_hist lag_before, lag_now;
    _Atomic uint32_t own_rung;
    struct {
        struct trunk_order order;
        unsigned left; /* how often the order is still to be repeated */
        size_t bytes;
        char text[TRUNK_ORDER_TEXT];
    } given;
    struct {
        uint32_t number; /* number of our last TRUNK_COUNT */
        uint64_t *bytes; /* [2 * n_links], as other machines reported */
        uint32_t *as_of; /* [2 * n_links]: number of the TRUNK_COUNT that was answered */
        unsigned asker;  /* machine for which the thread counts, */
        uint32_t asked;  /* and the number of its TRUNK_COUNT */
        pthread_t thread;
        bool begun, counts; /* begun: the thread is to be joined; counts: it is still running */
    } counts;
    struct link_terms *terms;  /* [n_links] rate and latency now; all machines keep them */
    uint8_t *cuts, *cuts_sent; /* [a bit per link]: cut by local processes; as last sent */
    int64_t cuts_ns;
    pthread_t receiver;
    bool receives;
    volatile sig_atomic_t *stop;
    uint8_t out[TRUNK_BURST][TRUNK_MAX]; /* datagrams */
};

/* trunk_peers.c */
int peers_create(struct trunk *t);
void peers_destroy(struct trunk *t);
/* Handles a datagram that arrived at at_ns; frames go on to trunk_ends.c. False: refused, and counted. */
bool peers_input(struct trunk *t, const uint8_t *m, size_t bytes, int64_t at_ns);
/* Sends states and HELLOs when due, and ends sessions of machines that do not answer. */
void peers_tick(struct trunk *t, int64_t now_ns);
/* Sends states at once, as after a change of the clock. */
void peers_say(struct trunk *t);
/* Completes header and MAC of the message m to machine `to`, whose body is complete. */
void peers_seal(struct trunk *t, unsigned to, enum trunk_type type, uint8_t *m, size_t bytes);
void peers_send(struct trunk *t, unsigned to, enum trunk_type type, uint8_t *m, size_t bytes);
static inline uint8_t *trunk_body(uint8_t *m)
{
    return m + sizeof(struct trunk_header);
}
/* Whether it has a session with us and has sent a state in it. */
static inline bool peer_alive(const struct trunk_peer *p)
{
    return session_open(&p->session) && p->state.sent_ns;
}
static inline bool peer_usable(const struct trunk_peer *p)
{
    return peer_alive(p) && !p->other_conf && !p->far;
}
static inline bool bit_of(const uint8_t *bits, unsigned i)
{
    return bits[i / 8] >> i % 8 & 1;
}
static inline void bit_set(uint8_t *bits, unsigned i, bool on)
{
    bits[i / 8] = (uint8_t)((bits[i / 8] & ~(1u << i % 8)) | (unsigned)on << i % 8);
}

/* trunk_clock.c */
/* Whether the times of a state are small enough that no sum or product of them overflows. */
bool trunk_clock_plausible(const struct trunk_state *s);
/* Wall time that `ps` of fabric time takes at a dilation, at most INT64_MAX / 2. */
int64_t trunk_clock_wall_ns(int64_t ps, uint32_t dilation);
/* Tries to find or make the fabric's clock. True: *out is its line, in our CLOCK_MONOTONIC. */
bool trunk_clock_agree(struct trunk *t, int64_t now_ns, struct clock_state *out);
/* Call it after each state of machine `from`. */
void trunk_clock_heard(struct trunk *t, unsigned from, bool interval_over, int64_t now_ns);
void trunk_clock_tick(struct trunk *t);
/* Sets the dilation, or asks the clock's owner to; effective a moment later. Needs a clock. */
void trunk_clock_dilate(struct trunk *t, uint32_t dilation);

/* trunk_ends.c */
int ends_create(struct trunk *t);
void ends_destroy(struct trunk *t);
/* Closes all links to a machine whose session has ended: the next session numbers frames anew. */
void ends_gone(struct trunk *t, unsigned machine);
/* Opens and closes ports as machines come and go. True: an end still waits for its switch process. */
bool ends_check(struct trunk *t);
/* Sends the frames of local switch processes to other machines. Returns the number of frames. */
unsigned ends_send(struct trunk *t, int64_t now_ns);
bool ends_pending(const struct trunk *t);
/* Takes a TRUNK_FRAME, TRUNK_ASK or TRUNK_ACK of another machine. */
void ends_input(struct trunk *t, unsigned from, unsigned type, const uint8_t *body, size_t bytes,
                int64_t now_ns);
/* Sends backlogs, acknowledgements and questions, and rings bells. Returns when to call it again if
 * nothing arrives; INT64_MAX: never. */
int64_t ends_flush(struct trunk *t, int64_t now_ns);
void ends_lateness(struct trunk *t, int64_t now_ns);

/* trunk_carrier.c */
int carrier_open(struct trunk *t); /* 0 or -errno, reported; with EAL up */
void carrier_close(struct trunk *t);
const char *carrier_device(const struct trunk *t); /* for users; FAB_UDP: frames go by UDP */
/* Whether the other machine hears our port. */
bool carrier_reaches(const struct trunk *t, unsigned machine);
/* Whether the port takes the frames that are about to be sent to `to`; if not, UDP does. */
bool carrier_takes(struct trunk *t, unsigned to, int64_t now_ns);
/* Sends sealed messages, at most TRUNK_BURST. Returns how many the port accepted. */
unsigned carrier_send(struct trunk *t, unsigned to, const struct iovec *v, unsigned n);
/* Frames have passed: polls the port often again, as more may follow. */
void carrier_awake(struct trunk *t, int64_t now_ns);
/* Takes the frames that have arrived at the port. Returns their number. */
unsigned carrier_receive(struct trunk *t, int64_t now_ns);
/* Time of the next poll of the port; INT64_MAX: with the next tick. */
int64_t carrier_next(const struct trunk *t, int64_t now_ns);
void carrier_tick(struct trunk *t);
/* Write our port into a state for machine `to`; read the port of machine `from` out of its state. */
void carrier_tell(const struct trunk *t, unsigned to, struct trunk_state *s);
void carrier_told(struct trunk *t, unsigned from, const struct trunk_state *s);

/* trunk_cuts.c */
int cuts_create(struct trunk *t);
void cuts_look(struct trunk *t, int64_t now_ns); /* tells other machines of links cut here */
void cuts_heard(struct trunk *t);                /* tells local processes of links cut elsewhere */

/* trunk_orders.c */
int orders_create(struct trunk *t);
/* Checks a change of links by the rules of the processes at their ends, and notes it. 0, or -EINVAL
 * with the reason in why. */
int orders_check(struct trunk *t, const char *params, char *why, size_t size);
/* Sends an order to all machines that are there. text: less than TRUNK_ORDER_TEXT characters. */
void orders_give(struct trunk *t, enum trunk_what what, const char *text);
void orders_tick(struct trunk *t); /* repeats the present order */
void orders_heard(struct trunk *t, unsigned from, const uint8_t *body, size_t bytes);

/* trunk_counts.c */
int counts_create(struct trunk *t);
void counts_destroy(struct trunk *t); /* call it without the lock */
/* Asks the other machines and waits for their answers, at most a second; releases the lock meanwhile. */
void counts_refresh(struct trunk *t);
/* Bytes of direction d. False: its sender runs on this machine, or has not been counted. */
bool counts_of(const struct trunk *t, unsigned d, uint64_t *bytes);
void counts_told(struct trunk *t, unsigned from, const uint8_t *body, size_t bytes);
void counts_asked(struct trunk *t, unsigned from, const uint8_t *body);

/* trunk_telemetry.c */
void trunk_telemetry(struct trunk *t); /* NULL ends it; call it without the lock */

#endif
