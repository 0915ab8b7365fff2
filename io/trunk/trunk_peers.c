/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A machine is there from its first state in a session (trunk_session.h) until it has not answered for
 * TRUNK_SILENT_NS, or begins another session. An answer is a state that names a recent state of ours: a
 * message that was delayed on its way does not keep a dead machine alive.
 */
#include "io/trunk/trunk_priv.h"

#include "system/credential.h"
#include "system/input.h"
#include "base/log.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <rte_common.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HELLO_NS 200000000  /* interval of HELLOs to a machine without a session; */
#define SOON_NS  1000000000 /* they are as frequent as states for so long after it has gone */

/* ---- sending ---- */

static uint64_t wall_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void message_seal(struct trunk *t, unsigned to, enum trunk_type type, uint64_t asked,
                         uint8_t *m, size_t bytes)
{
    struct trunk_peer *p = &t->peer[to];
    struct trunk_header h = {.magic = htobe32(TRUNK_MAGIC),
                             .version = TRUNK_VERSION,
                             .type = (uint8_t)type,
                             .from = (uint8_t)t->me,
                             .to = (uint8_t)to};

    session_stamp(&p->session, &h, asked, type == TRUNK_HELLO ? wall_ns() : 0);
    memcpy(m, &h, sizeof(h));
    (void)trunk_seal_put(t->seal, m,
                         bytes); /* without memory the MAC stays 0 and the receiver refuses it */
}

void peers_seal(struct trunk *t, unsigned to, enum trunk_type type, uint8_t *m, size_t bytes)
{
    message_seal(t, to, type, 0, m, bytes);
}

static bool is_of_frames(unsigned type)
{
    return type == TRUNK_FRAME || type == TRUNK_ASK || type == TRUNK_ACK;
}

static void datagram_send(struct trunk *t, unsigned to, const uint8_t *m, size_t bytes)
{
    struct trunk_peer *p = &t->peer[to];

    if (sendto(t->fd, m, bytes, MSG_DONTWAIT, (struct sockaddr *)&p->at, sizeof(p->at)) < 0)
        p->send_failed++;
    else
        p->sent++;
}

void peers_send(struct trunk *t, unsigned to, enum trunk_type type, uint8_t *m, size_t bytes)
{
    struct trunk_peer *p = &t->peer[to];

    if (!session_open(&p->session))
        return;
    peers_seal(t, to, type, m, bytes);
    if (is_of_frames(type) && carrier_takes(t, to, clock_mono_ns()) &&
        carrier_send(t, to, &(struct iovec){m, bytes}, 1)) {
        p->sent++;
        return;
    }
    datagram_send(t, to, m, bytes);
}

/* Sends a HELLO, or a CHALLENGE that answers the HELLO with nonce `asked`. */
static void say_nonce(struct trunk *t, unsigned to, enum trunk_type type, uint64_t asked)
{
    uint8_t m[sizeof(struct trunk_header)];

    if (!session_can_ask(&t->peer[to].session))
        return;
    message_seal(t, to, type, asked, m, sizeof(m));
    datagram_send(t, to, m, sizeof(m));
}

static void fill_clock(const struct trunk *t, struct trunk_state *s)
{
    struct clock_state c;

    if (!t->sh)
        return;
    c = clock_state_of(t->sh->clock);
    s->has_clock = htobe32(1);
    s->owner = htobe32(t->owner);
    s->change_ns = htobe64((uint64_t)c.change_ns);
    s->change_ps = htobe64((uint64_t)c.change_ps);
    s->before = htobe32(c.before);
    s->dilation = htobe32(c.dilation);
    s->before_skew_ppb = htobe32((uint32_t)c.before_skew_ppb);
    s->skew_ppb = htobe32((uint32_t)c.skew_ppb);
}

static void say_state(struct trunk *t, unsigned to, int64_t over_ns)
{
    struct trunk_peer *p = &t->peer[to];
    uint8_t m[TRUNK_MAX], *body = trunk_body(m), *bits = body + sizeof(struct trunk_state);
    size_t n = (p->n_ends + 7u) / 8;
    struct trunk_state s = {.conf = htobe64(t->conf),
                            .heard_sent_ns = htobe64(p->state.sent_ns),
                            .heard_ns = htobe64(p->state.sent_ns ? (uint64_t)p->state_ns : 0),
                            .late_us = htobe32((uint32_t)RTE_MIN(t->late_ns / 1000, 1 << 30)),
                            .over_us = htobe32((uint32_t)RTE_MIN(over_ns / 1000, 1 << 30))};

    memset(bits, 0, n);
    for (unsigned i = 0; t->sh && i < t->n_ends; i++)
        if (t->end[i].peer == to)
            bit_set(bits, t->end[i].bit, shared_switch_of(t->sh, t->end[i].near) != NULL);
    fill_clock(t, &s);
    carrier_tell(t, to, &s);
    s.sent_ns = htobe64((uint64_t)clock_mono_ns());
    memcpy(body, &s, sizeof(s));
    peers_send(t, to, TRUNK_STATE, m, sizeof(struct trunk_header) + sizeof(s) + n);
}

void peers_say(struct trunk *t)
{
    for (unsigned i = 0; i < t->n; i++)
        if (i != t->me && session_open(&t->peer[i].session))
            say_state(t, i, 0);
}

/* ---- what others say ---- */

static const char *name_of(const struct trunk *t, unsigned machine)
{
    return t->fab->machines[machine].name;
}

static void note_conf(struct trunk *t, unsigned from, uint64_t conf)
{
    struct trunk_peer *p = &t->peer[from];
    bool other = conf != t->conf;

    if (other && !p->other_conf)
        fprintf(
            stderr,
            "trib-switch: machine %s runs another conf than this one: its links stay down until "
            "both run the same\n",
            name_of(t, from));
    p->other_conf = other;
}

/* Logs another version, once until the machine is there: the message may be a replay. */
static void note_version(struct trunk *t, const struct trunk_header *h)
{
    struct trunk_peer *p = &t->peer[h->from];

    if (session_open(&p->session) || p->other_version)
        return;
    fprintf(stderr,
            "trib-switch: machine %s: found version %u of the trunk's messages, expected %u: its "
            "links stay down until both machines have the same version of Tributary\n",
            name_of(t, h->from), h->version, TRUNK_VERSION);
    p->other_version = true;
}

/* Forgets what the machine has said in its last session. */
static void peer_forget(struct trunk *t, unsigned machine)
{
    struct trunk_peer *p = &t->peer[machine];

    memset(&p->follow, 0, sizeof(p->follow));
    memset(&p->state, 0, sizeof(p->state));
    memset(&p->by_port, 0, sizeof(p->by_port));
    memset(p->ends, 0, (p->n_ends + 7u) / 8);
    memset(p->cuts, 0, (t->fab->n_links + 7u) / 8);
    p->far = false;
    p->order = 0;
    p->received = p->cuts_seq = 0;
    ends_gone(t, machine);
}

static void peer_begin(struct trunk *t, unsigned machine, int64_t now_ns)
{
    struct trunk_peer *p = &t->peer[machine];

    peer_forget(t, machine);
    p->proven_ns = now_ns;
    p->other_version = p->odd = false;
    T_LOG("trunk", LOG_INFO, "machine %s is there", name_of(t, machine));
}

static void peer_end(struct trunk *t, unsigned machine, int64_t now_ns)
{
    struct trunk_peer *p = &t->peer[machine];

    if (peer_alive(p))
        fprintf(stderr, "trib-switch: machine %s is gone: it has said nothing for %.1f s\n",
                name_of(t, machine), (double)TRUNK_SILENT_NS / 1e9);
    session_end(&p->session);
    peer_forget(t, machine);
    p->asks_ns = now_ns;
}

/* Takes a TRUNK_STATE. Returns NULL, or what is impossible in it. */
static const char *take_state(struct trunk *t, unsigned from, const uint8_t *body, size_t bytes,
                              int64_t at_ns)
{
    struct trunk_peer *p = &t->peer[from];
    struct trunk_state s;
    bool over = false;

    memcpy(&s, body, sizeof(s));
    note_conf(t, from, be64toh(s.conf));
    s = (struct trunk_state){.conf = be64toh(s.conf),
                             .sent_ns = be64toh(s.sent_ns),
                             .heard_sent_ns = be64toh(s.heard_sent_ns),
                             .heard_ns = be64toh(s.heard_ns),
                             .has_clock = be32toh(s.has_clock),
                             .change_ns = be64toh(s.change_ns),
                             .change_ps = be64toh(s.change_ps),
                             .before = be32toh(s.before),
                             .dilation = be32toh(s.dilation),
                             .before_skew_ppb = be32toh(s.before_skew_ppb),
                             .skew_ppb = be32toh(s.skew_ppb),
                             .owner = be32toh(s.owner),
                             .late_us = be32toh(s.late_us),
                             .over_us = be32toh(s.over_us),
                             .mac = {s.mac[0], s.mac[1], s.mac[2], s.mac[3], s.mac[4], s.mac[5]},
                             .hears = s.hears};
    if (s.has_clock && s.owner >= t->n)
        return "an owner of the clock that there is not";
    if (!trunk_clock_plausible(&s))
        return "times beyond 53 days of the fabric's, or without a dilation";
    if (t->sh && s.late_us)
        lateness_record(&t->sh->own->loop,
                        at_ns - RTE_MIN((int64_t)s.late_us, (int64_t)s.over_us) * 1000, at_ns);
    if (s.sent_ns <= p->state.sent_ns)
        return NULL; /* a later state has overtaken this one */
    p->proven_ns = RTE_MAX(p->proven_ns, RTE_MIN((int64_t)s.heard_sent_ns, at_ns));
    carrier_told(t, from, &s);
    p->state = s;
    p->state_ns = at_ns;
    if (bytes - sizeof(s) >= (p->n_ends + 7u) / 8)
        memcpy(p->ends, body + sizeof(s), (p->n_ends + 7u) / 8);
    if (s.heard_ns && s.heard_sent_ns + TRUNK_SILENT_NS > (uint64_t)at_ns)
        over = follow_take(&p->follow, (int64_t)s.sent_ns, at_ns, (int64_t)s.heard_sent_ns,
                           (int64_t)s.heard_ns);
    trunk_clock_heard(t, from, over, at_ns);
    return NULL;
}

static void take_lag(struct trunk *t, const uint8_t *body, size_t bytes)
{
    struct trunk_lag l;

    for (size_t at = 0; t->sh && at + sizeof(l) <= bytes; at += sizeof(l)) {
        memcpy(&l, body + at, sizeof(l));
        if (be16toh(l.bucket) < LAG_BUCKETS)
            atomic_fetch_add(&t->sh->own->lag.n[be16toh(l.bucket)], be16toh(l.n));
    }
}

static const char *take_cuts(struct trunk *t, const struct trunk_header *h, const uint8_t *body,
                             size_t bytes)
{
    struct trunk_peer *p = &t->peer[h->from];

    if (bytes != (t->fab->n_links + 7u) / 8)
        return "cuts of another number of links";
    if (!t->sh || be64toh(h->seq) < p->cuts_seq)
        return NULL;
    p->cuts_seq = be64toh(h->seq);
    memcpy(p->cuts, body, bytes);
    cuts_heard(t);
    return NULL;
}

/* Takes a message. Returns NULL, or what is impossible in it; then nothing of it was taken. */
static const char *trunk_peers_take(struct trunk *t, const struct trunk_header *h,
                                    const uint8_t *body, size_t bytes, int64_t at_ns)
{
    const unsigned from = h->from;
    uint32_t dilation;

    switch (h->type) {
    case TRUNK_STATE:
        return take_state(t, from, body, bytes, at_ns);
    case TRUNK_FRAME:
    case TRUNK_ASK:
    case TRUNK_ACK:
        carrier_awake(t, at_ns);
        if (t->pool && peer_usable(&t->peer[from]))
            ends_input(t, from, h->type, body, bytes, at_ns);
        break;
    case TRUNK_CUTS:
        return take_cuts(t, h, body, bytes);
    case TRUNK_LAG:
        take_lag(t, body, bytes);
        break;
    case TRUNK_COUNT:
        counts_asked(t, from, body);
        break;
    case TRUNK_COUNTS:
        counts_told(t, from, body, bytes);
        break;
    case TRUNK_DILATE:
        memcpy(&dilation, body, sizeof(dilation));
        if (t->sh && t->owner == t->me && be32toh(dilation))
            trunk_clock_dilate(t, be32toh(dilation));
        break;
    case TRUNK_ORDER:
        orders_heard(t, from, body, bytes);
        break;
    default:
        break;
    }
    return NULL;
}

/* Logs an impossible message, once in a session. */
static void note_odd(struct trunk *t, unsigned from, const char *odd)
{
    struct trunk_peer *p = &t->peer[from];

    if (!p->odd && !p->other_conf)
        fprintf(stderr, "trib-switch: machine %s: found %s: such messages are not taken\n",
                name_of(t, from), odd);
    p->odd = true;
}

static bool trunk_peers_refuse(struct trunk *t, enum trunk_refusal why)
{
    t->refused[why]++;
    return false;
}

bool peers_input(struct trunk *t, const uint8_t *m, size_t bytes, int64_t at_ns)
{
    enum trunk_refusal why = trunk_check(t->seal, m, bytes, t->me, t->n);
    enum session_says says;
    struct trunk_header h;
    const char *odd;

    if (why == TRUNK_FINE || why == TRUNK_OTHER)
        memcpy(&h, m, sizeof(h));
    if (why == TRUNK_OTHER)
        note_version(t, &h);
    if (why != TRUNK_FINE)
        return trunk_peers_refuse(t, why);
    says = session_input(&t->peer[h.from].session, &h, at_ns);
    if (says == SESSION_STALE || says == SESSION_REPLAY)
        return trunk_peers_refuse(t, says == SESSION_STALE ? TRUNK_STALE : TRUNK_REPLAY);
    if (says == SESSION_ASKED) {
        say_nonce(t, h.from, TRUNK_CHALLENGE, be64toh(h.session));
        return true;
    }
    if (says == SESSION_BEGINS)
        peer_begin(t, h.from, at_ns);
    t->peer[h.from].received++;
    odd = trunk_peers_take(t, &h, m + sizeof(h), bytes - sizeof(h), at_ns);
    if (odd)
        note_odd(t, h.from, odd);
    if (says == SESSION_BEGINS) { /* our state begins the session at the other end */
        say_state(t, h.from, 0);
        t->peer[h.from].sent_ns = at_ns;
    }
    return odd ? trunk_peers_refuse(t, TRUNK_BODY) : true;
}

/* ---- time ---- */

static void note_usable(struct trunk *t, unsigned i)
{
    struct trunk_peer *p = &t->peer[i];

    if (!t->sh || peer_usable(p) == p->noted)
        return;
    p->noted = !p->noted;
    rundir_note_machine(t->cfg.rd, name_of(t, i), p->noted);
    cuts_heard(t);
}

static void note_nonces(struct trunk *t)
{
    bool none = false;

    for (unsigned i = 0; i < t->n; i++)
        none |= i != t->me && !session_can_ask(&t->peer[i].session);
    if (none && !t->no_nonce)
        fprintf(stderr, "trib-switch: the kernel has no random numbers: no session with another "
                        "machine begins until it has\n");
    t->no_nonce = none;
}

static int64_t interval_of(const struct trunk_peer *p, int64_t now_ns)
{
    bool often = session_open(&p->session) || now_ns - p->asks_ns < SOON_NS;

    return often ? TRUNK_STATE_NS : HELLO_NS;
}

void peers_tick(struct trunk *t, int64_t now_ns)
{
    for (unsigned i = 0; i < t->n; i++) {
        struct trunk_peer *p = &t->peer[i];

        if (i == t->me)
            continue;
        session_tick(&p->session, now_ns);
        if (session_open(&p->session) && now_ns - p->proven_ns > TRUNK_SILENT_NS)
            peer_end(t, i, now_ns);
        note_usable(t, i);
        if (now_ns - p->sent_ns < interval_of(p, now_ns))
            continue;
        if (session_open(&p->session))
            say_state(t, i, now_ns - p->sent_ns);
        else
            say_nonce(t, i, TRUNK_HELLO, 0);
        p->sent_ns = now_ns;
    }
    note_nonces(t);
    t->late_ns = 0;
}

/* ---- set-up ---- */

/* Hashes the conf's text under its key. Whoever reads the hash in a datagram and knows the rest of the
 * conf learns no more about the key than from the datagram's MAC. 0: libcrypto has failed. */
static uint64_t hash_conf(const struct fabric *f)
{
    uint8_t mac[CREDENTIAL_MAC];
    char why[INPUT_WHY];
    size_t bytes = 0;
    char *text = input_file(f->path, INPUT_MOST, &bytes, why);
    bool ok = credential_mac(f->trunk_key, text ? text : "", bytes, mac);
    uint64_t h = 0;

    if (ok)
        memcpy(&h, mac, sizeof(h));
    if (text)
        credential_wipe(text, bytes);
    free(text);
    return be64toh(h);
}

int peers_create(struct trunk *t)
{
    const int64_t now = clock_mono_ns();

    t->conf = hash_conf(t->fab);
    if (!t->conf)
        return -EIO;
    t->seal = trunk_seal_new(t->fab->trunk_key);
    t->peer = calloc(t->n, sizeof(*t->peer));
    if (!t->seal || !t->peer)
        return -ENOMEM;
    for (unsigned i = 0; i < t->n; i++) {
        struct trunk_peer *p = &t->peer[i];

        p->at = (struct sockaddr_in){.sin_family = AF_INET,
                                     .sin_port = htons(t->fab->machines[i].port),
                                     .sin_addr.s_addr = htonl(t->fab->machines[i].ip)};
        p->asks_ns = now;
        session_init(&p->session, now);
        if (!session_can_ask(&p->session))
            return -EIO;
        p->ends = calloc(1, t->fab->n_links / 8u + 1);
        p->cuts = calloc(1, t->fab->n_links / 8u + 1);
        if (!p->ends || !p->cuts)
            return -ENOMEM;
    }
    return 0;
}

void peers_destroy(struct trunk *t)
{
    for (unsigned i = 0; t->peer && i < t->n; i++) {
        free(t->peer[i].ends);
        free(t->peer[i].cuts);
    }
    free(t->peer);
    trunk_seal_free(t->seal);
}
