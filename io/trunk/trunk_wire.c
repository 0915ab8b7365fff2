/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/trunk/trunk_wire.h"

#include "system/credential.h"

#include <endian.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define DIGEST 32

const char *const trunk_refusal_name[TRUNK_REFUSALS] = {
    [TRUNK_FINE] = "fine",       [TRUNK_SHORT] = "short",   [TRUNK_FOREIGN] = "foreign",
    [TRUNK_OTHER] = "version",   [TRUNK_FORGED] = "forged", [TRUNK_STALE] = "stale",
    [TRUNK_REPLAY] = "replayed", [TRUNK_BODY] = "body",
};

/* ---- sequence numbers ---- */

bool trunk_window_take(struct trunk_window *w, uint64_t seq)
{
    uint64_t *word = &w->seen[seq / 64 % (TRUNK_WINDOW / 64)], bit = 1ull << seq % 64;

    if (!seq || seq < w->least || (seq < w->highest && w->highest - seq >= TRUNK_WINDOW - 64))
        return false;
    if (seq > w->highest) {
        uint64_t from = w->highest / 64 + 1, to = seq / 64;

        if (to - w->highest / 64 >= TRUNK_WINDOW / 64)
            memset(w->seen, 0, sizeof(w->seen));
        else
            for (uint64_t i = from; i <= to; i++)
                w->seen[i % (TRUNK_WINDOW / 64)] = 0;
        w->highest = seq;
    } else if (*word & bit) {
        return false;
    }
    *word |= bit;
    return true;
}

/* ---- the MAC ---- */

struct trunk_seal {
    EVP_MAC *mac;
    EVP_MAC_CTX *keyed; /* with the key, before any message: copied for each */
};

struct trunk_seal *trunk_seal_new(const char *secret)
{
    char digest[] = "SHA256";
    OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string("digest", digest, 0),
                           OSSL_PARAM_construct_end()};
    struct trunk_seal *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    s->keyed = s->mac ? EVP_MAC_CTX_new(s->mac) : NULL;
    if (s->keyed &&
        EVP_MAC_init(s->keyed, (const unsigned char *)secret, strlen(secret), params) == 1)
        return s;
    trunk_seal_free(s);
    return NULL;
}

void trunk_seal_free(struct trunk_seal *s)
{
    if (!s)
        return;
    EVP_MAC_CTX_free(s->keyed);
    EVP_MAC_free(s->mac);
    free(s);
}

/* The MAC of everything but the MAC field itself. */
static bool mac_of(struct trunk_seal *s, const uint8_t *m, size_t bytes, uint8_t out[DIGEST])
{
    const size_t at = offsetof(struct trunk_header, mac), body = at + TRUNK_MAC;
    EVP_MAC_CTX *work = EVP_MAC_CTX_dup(s->keyed);
    size_t n = 0;
    bool ok;

    ok = work && EVP_MAC_update(work, m, at) == 1 &&
         EVP_MAC_update(work, m + body, bytes - body) == 1 &&
         EVP_MAC_final(work, out, &n, DIGEST) == 1;
    EVP_MAC_CTX_free(work);
    return ok && n == DIGEST;
}

bool trunk_seal_put(struct trunk_seal *s, uint8_t *m, size_t bytes)
{
    uint8_t digest[DIGEST];

    if (!mac_of(s, m, bytes, digest))
        return false;
    memcpy(m + offsetof(struct trunk_header, mac), digest, TRUNK_MAC);
    return true;
}

static size_t body_least(unsigned type)
{
    switch (type) {
    case TRUNK_STATE:
        return sizeof(struct trunk_state);
    case TRUNK_FRAME:
        return sizeof(struct trunk_frame) + 14;
    case TRUNK_ASK:
        return sizeof(struct trunk_frame);
    case TRUNK_ACK:
        return sizeof(struct trunk_ack);
    case TRUNK_DILATE:
        return sizeof(uint32_t);
    case TRUNK_ORDER:
        return sizeof(struct trunk_order);
    case TRUNK_COUNT:
    case TRUNK_COUNTS:
        return sizeof(struct trunk_counts);
    default:
        return 0;
    }
}

enum trunk_refusal trunk_check(struct trunk_seal *s, const uint8_t *m, size_t bytes, unsigned me,
                               unsigned n)
{
    struct trunk_header h;
    uint8_t digest[DIGEST];
    bool other;

    if (bytes < sizeof(h))
        return TRUNK_SHORT;
    memcpy(&h, m, sizeof(h));
    other = h.version != TRUNK_VERSION;
    if (be32toh(h.magic) != TRUNK_MAGIC || h.to != me || h.from >= n || h.from == me)
        return TRUNK_FOREIGN;
    if (!other && (!h.type || h.type >= TRUNK_TYPES || !h.session))
        return TRUNK_FOREIGN;
    if ((!other && bytes < sizeof(h) + body_least(h.type)) || bytes > TRUNK_MAX)
        return TRUNK_SHORT;
    if (!mac_of(s, m, bytes, digest) || !credential_same(digest, h.mac, TRUNK_MAC))
        return TRUNK_FORGED;
    return other ? TRUNK_OTHER : TRUNK_FINE;
}
