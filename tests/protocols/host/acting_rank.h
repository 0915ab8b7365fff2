/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank half that notes its calls and does within the next what a test wants, and a host's send(). */
#ifndef TRIB_TESTS_PROTOCOLS_HOST_ACTING_RANK_H
#define TRIB_TESTS_PROTOCOLS_HOST_ACTING_RANK_H

#include "protocols/host/rank_host.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Calls of the half since the last look, and what it does within the next. */
static struct {
    char calls[256];
    void (*act)(struct trib_rank *r);
    int rc;
    struct trib_op op;
    struct trib_packet packet;
} half;

/* Sends since the last look. */
static struct {
    unsigned n;
    int to, target;
    uint32_t head_bytes, data_bytes;
    const void *head, *data, *ctx;
    bool full;
} sent;

static int called(struct trib_rank *r, const char *name)
{
    void (*act)(struct trib_rank * rank) = half.act;
    size_t n = strlen(half.calls);

    snprintf(half.calls + n, sizeof(half.calls) - n, "%s@%lld ", name, (long long)r->api->now(r));
    half.act = NULL;
    if (act)
        act(r);
    return half.rc;
}

static int half_open(struct trib_rank *r)
{
    return called(r, "open");
}

static void half_close(struct trib_rank *r)
{
    called(r, "close");
}

static int half_start(struct trib_rank *r, const struct trib_op *op)
{
    half.op = *op;
    return called(r, "start");
}

static void half_packet(struct trib_rank *r, const struct trib_packet *p)
{
    half.packet = *p;
    called(r, "packet");
}

static void half_room(struct trib_rank *r)
{
    called(r, "room");
}

static void half_timer(struct trib_rank *r)
{
    called(r, "timer");
}

static const char *const counters[] = {"one", "two", NULL};
static const struct trib_rank_half rank_half = {.counters = counters,
                                                .open = half_open,
                                                .close = half_close,
                                                .start = half_start,
                                                .packet = half_packet,
                                                .room = half_room,
                                                .timer = half_timer};
static const struct trib_switch_half switch_half;
static const struct trib_protocol with_switch = {
    .version = TRIB_PROTOCOL_VERSION, .name = "acts", .sw = &switch_half, .rank = &rank_half};
static const int64_t keys[TRIB_KEYS] = {7};
static const uint16_t switch_of[4] = {0, 0, 2, 2};

static bool send_packet(void *ctx, int to, int target, const void *head, uint32_t head_bytes,
                        const void *data, uint32_t data_bytes)
{
    if (sent.full)
        return false;
    sent.n++;
    sent.to = to, sent.target = target;
    sent.head_bytes = head_bytes, sent.data_bytes = data_bytes;
    sent.head = head, sent.data = data, sent.ctx = ctx;
    return true;
}

static struct proto_rank_cfg config(const struct trib_protocol *p)
{
    return (struct proto_rank_cfg){.protocol = p,
                                   .key = keys,
                                   .rank = 1,
                                   .nranks = 4,
                                   .switch_of = switch_of,
                                   .job = 9,
                                   .payload = 100,
                                   .window = 11,
                                   .rate_bps = 12,
                                   .tree_bps = 13,
                                   .share_bps = 14,
                                   .round_trip_ps = 15,
                                   .notice_ps = 16,
                                   .send = send_packet,
                                   .ctx = &sent};
}

static struct proto_rank *rank_of(const struct trib_protocol *p, int64_t now)
{
    struct proto_rank_cfg cfg = config(p);
    struct proto_rank *r;
    char err[PROTO_TEXT] = "";

    assert_int_equal(proto_rank_create(&r, &cfg, now, err), 0);
    assert_string_equal(err, "");
    half.calls[0] = '\0';
    return r;
}

/* Does it within packet(), and says what has become of the rank. */
static const char *error_of(struct proto_rank *r, void (*act)(struct trib_rank *r))
{
    const struct trib_packet p = {.head_bytes = 0};

    memset(&sent, 0, sizeof(sent));
    half.act = act;
    proto_rank_packet(r, &p, 1);
    return proto_rank_error(r);
}

static int reset(void **state)
{
    (void)state;
    memset(&half, 0, sizeof(half));
    memset(&sent, 0, sizeof(sent));
    return 0;
}

static void says_why(struct trib_rank *r)
{
    (r->api->fail)(r, "100% full");
    (r->api->fail)(r, "later");
}

#endif
