/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A machine is alive from its first message that names our session, and so is no copy of an older
 * one, until it has been silent for TRUNK_SILENT_NS or begins another session.
 */
#include "io/trunk/trunk_priv.h"

#include "base/log.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <rte_common.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define HELLO_NS 200000000

/* ---- sending ---- */

void peers_seal(struct trunk *t, unsigned to, enum trunk_type type, uint8_t *m, size_t bytes)
{
    struct trunk_peer *p = &t->peer[to];
    struct trunk_header h = {.magic = htobe32(TRUNK_MAGIC),
                             .version = TRUNK_VERSION,
                             .type = (uint8_t)type,
                             .from = (uint8_t)t->me,
                             .to = (uint8_t)to,
                             .session = htobe64(t->session),
                             .peer_session = htobe64(p->session),
                             .seq = htobe64(++p->seq)};

    memcpy(m, &h, sizeof(h));
    (void)trunk_seal_put(t->seal, m,
                         bytes); /* without memory it goes out unsealed, and is refused */
}

static bool is_of_frames(unsigned type)
{
    return type == TRUNK_FRAME || type == TRUNK_ASK || type == TRUNK_ACK;
}

void peers_send(struct trunk *t, unsigned to, enum trunk_type type, uint8_t *m, size_t bytes)
{
    struct trunk_peer *p = &t->peer[to];

    peers_seal(t, to, type, m, bytes);
    if (is_of_frames(type) && carrier_takes(t, to, clock_mono_ns()) &&
        carrier_send(t, to, &(struct iovec){m, bytes}, 1)) {
        p->sent++;
        return;
    }
    if (sendto(t->fd, m, bytes, MSG_DONTWAIT, (struct sockaddr *)&p->at, sizeof(p->at)) < 0)
        p->send_failed++;
    else
        p->sent++;
}

static void say_hello(struct trunk *t, unsigned to)
{
    uint8_t m[sizeof(struct trunk_header) + sizeof(struct trunk_hello)];
    struct trunk_hello h = {.conf = htobe64(t->conf)};

    memcpy(trunk_body(m), &h, sizeof(h));
    peers_send(t, to, TRUNK_HELLO, m, sizeof(m));
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
        if (i != t->me && t->peer[i].alive)
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

static void begin_session(struct trunk *t, unsigned from, uint64_t session)
{
    struct trunk_peer *p = &t->peer[from];

    memset(&p->window, 0, sizeof(p->window));
    memset(&p->follow, 0, sizeof(p->follow));
    memset(&p->state, 0, sizeof(p->state));
    memset(&p->by_port, 0, sizeof(p->by_port));
    memset(p->ends, 0, (p->n_ends + 7u) / 8);
    p->session = session;
    p->alive = false;
    p->far = false;
    p->order = 0;
    ends_gone(t, from);
}

static void take_state(struct trunk *t, unsigned from, const uint8_t *body, size_t bytes,
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
    if (s.has_clock && (!s.dilation || !s.before || s.owner >= t->n))
        return;
    carrier_told(t, from, &s);
    p->state = s;
    p->state_ns = at_ns;
    if (bytes - sizeof(s) >= (p->n_ends + 7u) / 8)
        memcpy(p->ends, body + sizeof(s), (p->n_ends + 7u) / 8);
    if (s.heard_ns)
        over = follow_take(&p->follow, (int64_t)s.sent_ns, at_ns, (int64_t)s.heard_sent_ns,
                           (int64_t)s.heard_ns);
    if (t->sh && s.late_us)
        lateness_record(&t->sh->own->loop,
                        at_ns - RTE_MIN((int64_t)s.late_us, (int64_t)s.over_us) * 1000, at_ns);
    trunk_clock_heard(t, from, over, at_ns);
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

static void take(struct trunk *t, unsigned from, unsigned type, const uint8_t *body, size_t bytes,
                 int64_t at_ns)
{
    struct trunk_peer *p = &t->peer[from];
    uint32_t dilation;

    switch (type) {
    case TRUNK_STATE:
        take_state(t, from, body, bytes, at_ns);
        break;
    case TRUNK_FRAME:
    case TRUNK_ASK:
    case TRUNK_ACK:
        carrier_awake(t, at_ns);
        if (t->pool && peer_usable(p))
            ends_input(t, from, type, body, bytes, at_ns);
        break;
    case TRUNK_CUTS:
        if (bytes == (t->fab->n_links + 7u) / 8 && t->sh) {
            memcpy(p->cuts, body, bytes);
            cuts_heard(t);
        }
        break;
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
        if (t->owner == t->me && be32toh(dilation))
            trunk_clock_dilate(t, be32toh(dilation));
        break;
    case TRUNK_ORDER:
        orders_heard(t, from, body, bytes);
        break;
    default:
        break;
    }
}

bool peers_input(struct trunk *t, const uint8_t *m, size_t bytes, int64_t at_ns)
{
    const uint8_t *body = m + sizeof(struct trunk_header);
    struct trunk_header h;
    struct trunk_hello hello;
    struct trunk_peer *p;
    uint64_t session;
    bool fresh;

    memcpy(&h, m, sizeof(h));
    p = &t->peer[h.from];
    session = be64toh(h.session);
    fresh = be64toh(h.peer_session) == t->session;
    if (h.type == TRUNK_HELLO) {
        memcpy(&hello, body, sizeof(hello));
        if (!fresh &&
            session != p->session) { /* it may be old: whoever sent it proves that it is not */
            uint64_t was = p->session;

            p->session = session;
            say_hello(t, h.from);
            p->session = was;
            return false;
        }
        note_conf(t, h.from, be64toh(hello.conf));
    }
    if (!fresh) {
        t->refused[TRUNK_STALE]++;
        if (session == p->session && at_ns - p->sent_ns > HELLO_NS)
            say_hello(t, h.from);
        return false;
    }
    if (session != p->session) {
        begin_session(t, h.from, session);
        say_hello(t, h.from);
    }
    if (!trunk_window_take(&p->window, be64toh(h.seq))) {
        t->refused[TRUNK_REPLAY]++;
        return false;
    }
    if (!p->alive)
        T_LOG("trunk", LOG_INFO, "machine %s is there", name_of(t, h.from));
    p->alive = true;
    if (!is_of_frames(h.type) && h.type != TRUNK_PROBE) /* these may come without its clock */
        p->heard_ns = at_ns;
    p->received++;
    take(t, h.from, h.type, body, bytes - sizeof(h), at_ns);
    return true;
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

void peers_tick(struct trunk *t, int64_t now_ns)
{
    for (unsigned i = 0; i < t->n; i++) {
        struct trunk_peer *p = &t->peer[i];

        if (i == t->me)
            continue;
        if (p->alive && now_ns - p->heard_ns > TRUNK_SILENT_NS) {
            fprintf(stderr, "trib-switch: machine %s is gone: it has said nothing for %.1f s\n",
                    name_of(t, i), (double)TRUNK_SILENT_NS / 1e9);
            begin_session(t, i, 0);
        }
        note_usable(t, i);
        if (now_ns - p->sent_ns < (p->alive ? TRUNK_STATE_NS : HELLO_NS))
            continue;
        if (p->alive)
            say_state(t, i, now_ns - p->sent_ns);
        else
            say_hello(t, i);
        p->sent_ns = now_ns;
    }
    t->late_ns = 0;
}

/* ---- set-up ---- */

/* FNV-1a of the conf's text. */
static uint64_t hash_file(const char *path)
{
    uint64_t h = 0xcbf29ce484222325ull;
    FILE *f = fopen(path, "re");
    int c;

    while (f && (c = getc(f)) != EOF)
        h = (h ^ (unsigned)c) * 0x100000001b3ull;
    if (f)
        fclose(f);
    return h;
}

int peers_create(struct trunk *t)
{
    t->conf = hash_file(t->fab->path);
    t->seal = trunk_seal_new(t->fab->trunk_key);
    t->peer = calloc(t->n, sizeof(*t->peer));
    if (!t->seal || !t->peer)
        return -ENOMEM;
    while (!t->session)
        if (getrandom(&t->session, sizeof(t->session), 0) < 0)
            return -errno;
    for (unsigned i = 0; i < t->n; i++) {
        struct trunk_peer *p = &t->peer[i];

        p->at = (struct sockaddr_in){.sin_family = AF_INET,
                                     .sin_port = htons(t->fab->machines[i].port),
                                     .sin_addr.s_addr = htonl(t->fab->machines[i].ip)};
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
