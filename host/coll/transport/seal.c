/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/coll/transport/seal.h"

#include "base/assert.h"

#include <endian.h>
#include <string.h>

struct sip {
    uint64_t a, b, c, d;
};

static inline uint64_t sip_rotl(uint64_t x, unsigned n)
{
    return x << n | x >> (64 - n);
}

static void sip_rounds(struct sip *s, unsigned n)
{
    while (n--) {
        s->a += s->b, s->c += s->d;
        s->b = sip_rotl(s->b, 13) ^ s->a, s->d = sip_rotl(s->d, 16) ^ s->c;
        s->a = sip_rotl(s->a, 32);
        s->c += s->b, s->a += s->d;
        s->b = sip_rotl(s->b, 17) ^ s->c, s->d = sip_rotl(s->d, 21) ^ s->a;
        s->c = sip_rotl(s->c, 32);
    }
}

static void sip_word(struct sip *s, uint64_t w)
{
    s->d ^= w;
    sip_rounds(s, 2);
    s->a ^= w;
}

uint64_t siphash(uint64_t k0, uint64_t k1, const void *p, size_t n)
{
    /* "somepseudorandomlygeneratedbytes" */
    struct sip s = {k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du, k0 ^ 0x6c7967656e657261u,
                    k1 ^ 0x7465646279746573u};
    const uint8_t *at = p;
    uint64_t w, last = (uint64_t)n << 56;

    for (; n >= 8; n -= 8, at += 8) {
        memcpy(&w, at, 8);
        sip_word(&s, le64toh(w));
    }
    w = 0;
    memcpy(&w, at, n);
    sip_word(&s, last | le64toh(w));
    s.c ^= 0xff;
    sip_rounds(&s, 4);
    return s.a ^ s.b ^ s.c ^ s.d;
}

/* msg: with 0 as its MAC. */
static uint64_t mac_of(const struct seal_key *k, uint32_t to, const void *msg, size_t len)
{
    return siphash(k->key, (uint64_t)k->group << 32 | to, msg, len);
}

void seal_put(const struct seal_key *k, uint32_t from, uint32_t to, uint32_t seq, void *msg,
              size_t len)
{
    struct ctl_head *h = msg;

    T_ASSERT(len >= sizeof(*h), "a message between ranks has no head");
    h->seq = rte_cpu_to_be_32(seq);
    h->from = rte_cpu_to_be_32(from);
    h->mac = 0;
    h->mac = rte_cpu_to_be_64(mac_of(k, to, msg, len));
}

bool seal_right(const struct seal_key *k, uint32_t to, const void *msg, size_t len)
{
    uint8_t copy[256];
    struct ctl_head *h = (void *)copy;
    uint64_t mac;

    if (len < sizeof(*h) || len > sizeof(copy))
        return false;
    memcpy(copy, msg, len);
    mac = rte_be_to_cpu_64(h->mac);
    h->mac = 0;
    return mac == mac_of(k, to, copy, len);
}

uint64_t seal_of_job(uint64_t key, uint32_t group)
{
    return siphash(key, group, "job", 3);
}

bool seal_new(struct seal_seen *s, uint32_t seq)
{
    uint32_t behind = s->top - seq;

    if (seq > s->top) {
        uint32_t ahead = seq - s->top;

        s->bits = ahead < SEAL_WINDOW ? s->bits << ahead : 0;
        s->bits |= 1;
        s->top = seq;
        return true;
    }
    if (!seq || behind >= SEAL_WINDOW || s->bits >> behind & 1)
        return false;
    s->bits |= 1u << behind;
    return true;
}
