/* SPDX-License-Identifier: BSD-3-Clause */
/* Internals of trunk.h. All state is under trunk.lock, which each thread holds while it works. */
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

#define TRUNK_STATE_NS   50000000   /* between messages to each machine */
#define TRUNK_SILENT_NS  2500000000 /* a machine that has said nothing for so long is gone */
#define TRUNK_BURST      32u
#define TRUNK_ORDER_TEXT 512u
#define TRUNK_BACKLOG    1024u /* frames that wait for room at a switch process */

struct trunk_peer {
    struct sockaddr_in at;
    struct trunk_session session;
    bool other_conf, other_version;
    bool odd;          /* it has said what cannot be, in this session */
    bool noted;        /* in the run directory */
    bool far;          /* its clock differs from ours by more than a moment */
    int64_t near_ns;   /* when it last did not */
    int64_t proven_ns; /* when we sent what it has answered last: it was alive after that */
    int64_t sent_ns;   /* last state, or HELLO */
    int64_t asks_ns;   /* since when there is no session */
    uint64_t cuts_seq; /* of the last message with cuts */
    struct follow follow;
    struct trunk_state state; /* the last, in host order */
    int64_t state_ns;         /* when it arrived */
    uint8_t *ends;            /* bit by trunk_end.bit: its switch process is there */
    uint8_t *cuts;            /* bit by link */
    uint16_t n_ends;
    uint32_t order; /* the last that was carried out */
    uint64_t
        told_in; /* our nonce of the session in which it was told the order that is said; 0: not yet */
    uint64_t received, sent, send_failed;
    struct { /* trunk_carrier.c */
        uint8_t mac[6];
        bool hears_us;
        int64_t heard_ns, used_ns; /* when its port was heard; when it was last sent frames */
        uint64_t sent, received;
    } by_port;
};

/* A link to another machine. We are its far end for the switch process that runs `near`. */
struct trunk_end {
    uint16_t link, near, far;
    uint16_t bit; /* in the list of ends that the two machines share */
    uint8_t peer;
    bool is_a; /* the far end is end `a`, which listens */
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
    bool no_nonce;     /* nothing could be drawn for a session, which was said */
    struct shared *sh; /* NULL: while the clock is agreed on */
    struct trunk_end *end;
    struct watch watch; /* of the ports of end[] */
    unsigned n_ends;
    struct rte_mempool *pool;
    struct carrier *carrier; /* NULL: UDP carries the frames */
    /* the clock */
    bool has_clock;
    unsigned owner;
    struct clock_state owner_was; /* the owner's line that ours follows */
    uint32_t dilation; /* as it was asked of the owner, or that says: ours catches up by another */
    int64_t began_ns, looked_ns;
    int64_t wakes_ns; /* when the thread on the bell wakes without being rung */
    /* lateness */
    int64_t late_ns, lag_sent_ns; /* of the switch processes here since the last message */
    struct lag_hist lag_before, lag_now;
    _Atomic uint32_t own_rung;
    struct {
        struct trunk_order order;
        unsigned left; /* times that it is still to be said */
        size_t bytes;
        char text[TRUNK_ORDER_TEXT];
    } given;
    struct {
        uint32_t number; /* of the last question to others */
        uint64_t *bytes; /* [2 * n_links], as they said it */
        uint32_t *as_of; /* [2 * n_links]: the question that this answers */
        unsigned asker;  /* whom the thread counts for, */
        uint32_t asked;  /* and that one's question */
        pthread_t thread;
        bool begun, counts; /* the thread is to be joined; it is under way */
    } counts;
    struct link_terms *terms;  /* [n_links] that links have by now: each change goes to all */
    uint8_t *cuts, *cuts_sent; /* [bytes of a bit per link] */
    int64_t cuts_ns;
    pthread_t receiver;
    bool receives;
    volatile sig_atomic_t *stop;
    uint8_t out[TRUNK_BURST][TRUNK_MAX]; /* datagrams */
};

/* trunk_peers.c */
int peers_create(struct trunk *t);
void peers_destroy(struct trunk *t);
/* A datagram, and when it arrived. Frames go to trunk_ends.c. False: it is refused, and counted. */
bool peers_input(struct trunk *t, const uint8_t *m, size_t bytes, int64_t at_ns);
/* Periodic messages and liveness. */
void peers_tick(struct trunk *t, int64_t now_ns);
/* The same at once, as after a change of the clock. */
void peers_say(struct trunk *t);
/* Completes header and MAC of a message to `to` at m, whose body is there already. */
void peers_seal(struct trunk *t, unsigned to, enum trunk_type type, uint8_t *m, size_t bytes);
void peers_send(struct trunk *t, unsigned to, enum trunk_type type, uint8_t *m, size_t bytes);
static inline uint8_t *trunk_body(uint8_t *m)
{
    return m + sizeof(struct trunk_header);
}
/* It has a session with us, and has said something in it. */
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
/* Whether its times are such that no sum or product of them overflows. */
bool trunk_clock_plausible(const struct trunk_state *s);
/* Wall time of so much fabric time at a dilation, INT64_MAX / 2 at most. */
int64_t trunk_clock_wall_ns(int64_t ps, uint32_t dilation);
/* Looks what the others say. True: the clock's line is in *out. */
bool trunk_clock_agree(struct trunk *t, int64_t now_ns, struct clock_state *out);
/* After a message with the state of machine `from`. */
void trunk_clock_heard(struct trunk *t, unsigned from, bool interval_over, int64_t now_ns);
void trunk_clock_tick(struct trunk *t);
/* Asks the owner for this dilation, or sets it; in effect a moment later. This machine has a clock. */
void trunk_clock_dilate(struct trunk *t, uint32_t dilation);

/* trunk_ends.c */
int ends_create(struct trunk *t);
void ends_destroy(struct trunk *t);
/* The machine has ended its session: frames are numbered anew. */
void ends_gone(struct trunk *t, unsigned machine);
/* Opens and closes ports as machines come and go; true: some end waits for its switch process. */
bool ends_check(struct trunk *t);
/* Sends what the switch processes have for other machines. Returns the number of frames. */
unsigned ends_send(struct trunk *t, int64_t now_ns);
bool ends_pending(const struct trunk *t);
/* TRUNK_FRAME, TRUNK_ASK or TRUNK_ACK of another machine. */
void ends_input(struct trunk *t, unsigned from, unsigned type, const uint8_t *body, size_t bytes,
                int64_t now_ns);
/* Sends backlogs, acknowledgements and questions, rings bells. Returns when it has to be called again
 * if nothing arrives; INT64_MAX: it need not. */
int64_t ends_flush(struct trunk *t, int64_t now_ns);
void ends_lateness(struct trunk *t, int64_t now_ns);

/* trunk_carrier.c */
int carrier_open(struct trunk *t); /* 0 or -errno, reported; with EAL up */
void carrier_close(struct trunk *t);
const char *carrier_device(const struct trunk *t); /* for users; from FAB_UDP on: none */
/* The other machine hears our port. */
bool carrier_reaches(const struct trunk *t, unsigned machine);
/* Messages of frames are about to be sent to `to`: whether the port takes them, else UDP does. */
bool carrier_takes(struct trunk *t, unsigned to, int64_t now_ns);
/* Sealed messages, TRUNK_BURST at most. Returns how many the port took. */
unsigned carrier_send(struct trunk *t, unsigned to, const struct iovec *v, unsigned n);
/* Frames may follow by the port. */
void carrier_awake(struct trunk *t, int64_t now_ns);
/* Takes what has arrived at the port: returns how many frames. */
unsigned carrier_receive(struct trunk *t, int64_t now_ns);
/* When it has to be asked again; INT64_MAX: with the next tick. */
int64_t carrier_next(const struct trunk *t, int64_t now_ns);
void carrier_tick(struct trunk *t);
/* What a message of the state of this machine says of its port, and what that of another says. */
void carrier_tell(const struct trunk *t, unsigned to, struct trunk_state *s);
void carrier_told(struct trunk *t, unsigned from, const struct trunk_state *s);

/* trunk_cuts.c */
int cuts_create(struct trunk *t);
void cuts_look(struct trunk *t, int64_t now_ns); /* what is cut here: to the others */
void cuts_heard(struct trunk *t);                /* what is cut elsewhere: to the processes here */

/* trunk_orders.c */
int orders_create(struct trunk *t);
/* Whether links may be changed so, by the rules of the processes at their ends: 0, or -EINVAL and why.
 * Then they count as changed. */
int orders_check(struct trunk *t, const char *params, char *why, size_t size);
/* Passes an order on to all machines that are there. text: less than TRUNK_ORDER_TEXT characters. */
void orders_give(struct trunk *t, enum trunk_what what, const char *text);
void orders_tick(struct trunk *t); /* says it again */
void orders_heard(struct trunk *t, unsigned from, const uint8_t *body, size_t bytes);

/* trunk_counts.c */
int counts_create(struct trunk *t);
void counts_destroy(struct trunk *t); /* without the lock */
/* Asks the other machines, and waits for their answers, a second at most; releases the lock meanwhile. */
void counts_refresh(struct trunk *t);
/* False: direction d is not for us to say, or not known. */
bool counts_of(const struct trunk *t, unsigned d, uint64_t *bytes);
void counts_told(struct trunk *t, unsigned from, const uint8_t *body, size_t bytes);
void counts_asked(struct trunk *t, unsigned from, const uint8_t *body);

/* trunk_telemetry.c */
void trunk_telemetry(struct trunk *t); /* NULL: it ends; called without the lock */

#endif
