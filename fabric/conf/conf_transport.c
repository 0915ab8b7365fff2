/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reliable transport of hosts and aggregation nodes:
 *
 *   transport = { window = 512; ack_timeout = "1ms"; retry_count = 7; early_slots = false; };
 *
 * A program that sets up its own queue pairs chooses timeout and retry_count itself, by
 * ibv_modify_qp(), as on hardware; `window` holds for every queue pair of an HCA.
 */
#include "fabric/build.h"

#define LEN(a)       (sizeof(a) / sizeof((a)[0]))
#define TIMEOUT_UNIT 4096000ll /* ps: IBTA's 4.096 us, doubled `timeout` times */
#define TIMEOUT_MAX  31
#define RETRY_MAX    7

#define T(field) offsetof(struct transport_keys, field)

struct transport_keys {
    uint64_t ack_timeout_ps;
    uint32_t window, retry_count;
    bool early_slots;
};

/* The least exponent whose time is at least ps. */
static uint8_t timeout_of(uint64_t ps)
{
    uint8_t n = 1;

    while (n < TIMEOUT_MAX && (uint64_t)TIMEOUT_UNIT << n < ps)
        n++;
    return n;
}

void conf_transport(struct build *b, config_setting_t *s)
{
    static const struct key keys[] = {
        /* Packets that a queue pair of a host may have unacknowledged. Default: twice what the fastest
         * port sends in the longest round trip, at least 256. */
        RANGE_KEY("window", KEY_UINT, T(window), 1, FAB_MAX_WINDOW, NULL),
        /* Time without an acknowledgement after which packets are sent again, rounded up to 4.096 us
         * times a power of two, as verbs have it. Default: hosts 67 ms, aggregation nodes 4.2 ms; with
         * `dilation = 1` 1.07 s and 537 ms. */
        RANGE_KEY("ack_timeout", KEY_TIME, T(ack_timeout_ps), 2 * TIMEOUT_UNIT,
                  TIMEOUT_UNIT << TIMEOUT_MAX, NULL),
        /* Timeouts and sequence errors in a row after which a queue pair fails. */
        RANGE_KEY("retry_count", KEY_UINT, T(retry_count), 0, RETRY_MAX, "7"),
        /* Whether a slot of a send or receive queue is free when its request ends; otherwise, as with
         * NICs, when its completion, or a later one of the queue, is polled. */
        PLAIN_KEY("early_slots", KEY_BOOL, T(early_slots), "false"),
    };
    struct transport_keys k = {0};
    struct fab_transport *t = &b->f->transport;

    keys_initial(keys, LEN(keys), &k);
    if (s && config_setting_is_group(s))
        keys_read(b, s, keys, LEN(keys), &k);
    else if (s)
        keys_expected(b, s, "a group { window; ack_timeout; retry_count; early_slots; }");
    t->window = k.window;
    t->retry_count = (uint8_t)k.retry_count;
    t->early_slots = k.early_slots;
    t->ack_timeout = k.ack_timeout_ps ? timeout_of(k.ack_timeout_ps) : 0;
}
