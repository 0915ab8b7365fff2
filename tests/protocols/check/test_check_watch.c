/* SPDX-License-Identifier: BSD-3-Clause */
/* What the watch between a switch half and its host finds and counts, and what it hands on. */
#include "protocols/check/check_watch.h"
#include "protocols/host/switch_host.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What the half does with a packet. */
static struct {
    uint32_t slot, from, bytes; /* writes so many bytes of a slot */
    uint32_t work, ops;         /* declares */
    uint32_t elements;          /* reduces */
    bool shared, twice;
    int refuses;
} act;
static char calls[128];
static struct trib_array *shared, *own;
static uint8_t *kept; /* the slot of the last packet */

static void note(const char *name)
{
    strncat(calls, name, sizeof(calls) - strlen(calls) - 1);
}

static int half_open(struct trib_switch *s)
{
    note("open ");
    shared = s->api->array(s, NULL, "shared", 3, 16);
    return shared ? 0 : -ENOSPC;
}

static void half_close(struct trib_switch *s)
{
    (void)s;
    note("close ");
}

static int half_job_open(struct trib_switch *s, struct trib_job *job)
{
    note("job_open ");
    own = s->api->array(s, job, "own", 4, 500);
    return own ? act.refuses : -ENOSPC;
}

static void half_job_close(struct trib_switch *s, struct trib_job *job)
{
    (void)s, (void)job;
    note("job_close ");
}

static void half_packet(struct trib_switch *s, struct trib_job *job, const struct trib_packet *p)
{
    float x[64] = {0};
    uint8_t *slot = s->api->at(s, act.shared ? shared : own, act.slot);

    (void)job, (void)p;
    kept = slot;
    note("packet ");
    for (uint32_t i = 0; i < act.bytes; i++)
        slot[act.from + i] ^= 1;
    if (act.twice)
        s->api->at(s, act.shared ? shared : own, act.slot);
    if (act.work || act.ops)
        s->api->work(s, act.work, act.ops);
    if (act.elements)
        s->api->reduce(s, x, x, act.elements, TRIB_FLOAT32, TRIB_SUM);
}

static void half_timer(struct trib_switch *s)
{
    (void)s;
    note("timer ");
}

static const struct trib_switch_half half = {.max_bytes = 64,
                                             .max_ops = 16,
                                             .open = half_open,
                                             .close = half_close,
                                             .job_open = half_job_open,
                                             .job_close = half_job_close,
                                             .packet = half_packet,
                                             .timer = half_timer};
static const struct trib_protocol real = {
    .version = TRIB_PROTOCOL_VERSION, .name = "acts", .about = "x", .sw = &half};

static void emit(void *ctx, void *job, int to, const void *head, uint32_t head_bytes,
                 const void *data, uint32_t data_bytes)
{
    (void)ctx, (void)job, (void)to, (void)head, (void)head_bytes, (void)data, (void)data_bytes;
}

static const int64_t keys[TRIB_KEYS];
static struct proto_switch *sw;
static struct proto_job *pj;

static int open_job(void)
{
    struct proto_job_cfg job = {.nranks = 2, .n_children = 2, .n_below = 2, .root = true};
    char err[PROTO_TEXT] = "";

    return proto_job_open(sw, &job, 0, &pj, err);
}

static void begin(bool limit, bool guard)
{
    struct proto_switch_cfg cfg = {
        .key = keys, .payload = 256, .memory = 1 << 20, .emit = emit, .ctx = &act};
    char err[PROTO_TEXT] = "";

    memset(&act, 0, sizeof(act));
    calls[0] = '\0';
    cfg.protocol = watch_begin(&real, limit, guard);
    assert_int_equal(proto_switch_create(&sw, &cfg, err), 0);
    assert_int_equal(open_job(), 0);
}

static void packet(void)
{
    const struct trib_packet p = {.from = TRIB_CHILD(0)};

    proto_switch_packet(sw, pj, &p, 0);
}

static void end(void)
{
    char leak[PROTO_TEXT];

    if (pj)
        proto_job_close(sw, pj, 0, leak);
    pj = NULL;
    proto_switch_destroy(sw);
    watch_end();
}

static void a_protocol_is_wrapped(void **state)
{
    const struct trib_protocol ranks = {.name = "alone"};
    const struct trib_protocol *p;

    (void)state;
    p = watch_begin(&ranks, true, true);
    assert_string_equal(p->name, "alone");
    assert_null(p->sw);
    p = watch_begin(&real, true, false);
    assert_string_equal(p->name, "acts");
    assert_string_equal(p->about, "x");
    assert_true(p->sw->max_bytes == 64 && p->sw->max_ops == 16);
    p = watch_begin(&real, false, false);
    assert_true(p->sw->max_bytes == UINT32_MAX && p->sw->max_ops == UINT32_MAX);
    assert_string_equal(watch_seen()->why, "");
    watch_end();
}

static void calls_are_handed_on(void **state)
{
    (void)state;
    begin(true, true);
    packet();
    end();
    assert_string_equal(calls, "open job_open packet job_close close ");
    assert_string_equal(watch_seen()->why, "");
    assert_int_equal(watch_seen()->touched, 1);
    begin(true, true);
    end();
    assert_int_equal(watch_seen()->touched, 0); /* each begins anew */
}

static void functions_may_be_missing(void **state)
{
    struct trib_switch_half less = half;
    struct trib_protocol p = real;
    struct trib_switch_api api = {.array = NULL};
    struct trib_switch s = {.api = &api};
    const struct trib_protocol *w;

    (void)state;
    less.open = NULL, less.close = NULL, less.timer = NULL;
    p.sw = &less;
    calls[0] = '\0';
    w = watch_begin(&p, true, true);
    assert_int_equal(w->sw->open(&s), 0);
    w->sw->timer(&s);
    w->sw->close(&s);
    w = watch_begin(&real, true, true);
    w->sw->timer(&s);
    w->sw->close(&s);
    assert_string_equal(calls, "timer close ");
    watch_end();
}

/* Memory has the size that is asked for, and room behind each slot where that is watched. */
static void slots_have_a_guard(void **state)
{
    (void)state;
    begin(true, false);
    assert_int_equal(proto_switch_counters(sw)->memory, 3 * 16 + 4 * 504);
    end();
    begin(true, true);
    assert_int_equal(proto_switch_counters(sw)->memory, 3 * 32 + 4 * 520);
    end();
}

struct row {
    uint32_t slot, from, bytes, work, ops, elements;
    bool shared, guard;
    const char *says;
    uint32_t most_bytes, most_ops;
};

static void assert_row(const struct row *r)
{
    begin(false, r->guard);
    act.slot = r->slot, act.from = r->from, act.bytes = r->bytes;
    act.work = r->work, act.ops = r->ops, act.elements = r->elements;
    act.shared = r->shared;
    act.twice = true; /* a slot is compared once */
    packet();
    act.bytes = act.work = act.ops = act.elements = 0;
    packet();
    assert_string_equal(watch_seen()->why, r->says);
    assert_int_equal(watch_seen()->most_bytes, r->most_bytes);
    assert_int_equal(watch_seen()->most_ops, r->most_ops);
    assert_int_equal(watch_seen()->touched, 2);
    end();
    assert_string_equal(watch_seen()->why, r->says);
}

#define CHANGES(slot, changed, declared)                                                           \
    "work: slot " slot " of array \"own\" has changed in " changed                                 \
    " bytes; work on this packet is declared as " declared " bytes"

static void changes_are_compared_with_the_work(void **state)
{
    static const struct row rows[] = {
        {0, 0, 0, 0, 0, 0, false, true, "", 0, 0},
        {2, 0, 1, 0, 0, 0, false, true, CHANGES("2", "1", "0"), 0, 0},
        {3, 499, 1, 0, 0, 0, false, true, CHANGES("3", "1", "0"), 0, 0},
        {1, 0, 129, 1, 0, 0, false, true, "", 1, 0}, /* 128 are free beside any work */
        {1, 0, 130, 1, 0, 0, false, true, CHANGES("1", "130", "1"), 1, 0},
        {1, 0, 128, 0, 1, 0, false, true, "", 0, 1},
        {1, 0, 129, 0, 1, 0, false, true, CHANGES("1", "129", "0"), 0, 1},
        {1, 0, 208, 60, 20, 5, false, true, "", 80, 25},
        {1, 0, 209, 60, 20, 5, false, false, CHANGES("1", "209", "80"), 80, 25},
        {1, 0, 16, 0, 0, 4, true, false, "", 16, 4},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_row(&rows[i]);
}

/* What is 500 bytes is rounded up to 504, of 16 there are 16; behind them are 16 of the guard. */
static void writes_behind_a_slot_are_found(void **state)
{
    static const struct row rows[] = {
        {3, 503, 1, 1, 0, 0, false, true, "", 1, 0},
        {3, 504, 1, 1, 0, 0, false, true, "a write behind the end of slot 3 of array \"own\"", 1,
         0},
        {0, 519, 1, 1, 0, 0, false, true, "a write behind the end of slot 0 of array \"own\"", 1,
         0},
        {2, 16, 1, 1, 0, 0, true, true, "a write behind the end of slot 2 of array \"shared\"", 1,
         0},
        {1, 31, 1, 1, 0, 0, true, true, "a write behind the end of slot 1 of array \"shared\"", 1,
         0},
        {1, 16, 1, 1, 0, 0, true, false, "", 1, 0},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_row(&rows[i]);
}

/* Outside of packets: when the job, or the switch, ends. */
static void writes_between_packets_are_found(void **state)
{
    static const struct {
        bool shared;
        uint32_t from;
        const char *says;
    } rows[] = {{false, 503, ""},
                {false, 504, "a write behind the end of slot 1 of array \"own\""},
                {true, 15, ""},
                {true, 31, "a write behind the end of slot 1 of array \"shared\""}};

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin(true, true);
        act.shared = rows[i].shared;
        act.slot = 1;
        packet();
        kept[rows[i].from] ^= 1;
        assert_string_equal(watch_seen()->why, "");
        end();
        assert_string_equal(watch_seen()->why, rows[i].says);
    }
}

static void a_slot_that_is_not_there_is_the_host_s_to_name(void **state)
{
    (void)state;
    begin(true, true);
    act.slot = 4;
    packet();
    assert_string_equal(watch_seen()->why, "");
    assert_int_equal(watch_seen()->touched, 0);
    assert_ptr_equal(proto_switch_doomed(sw), pj);
    assert_string_equal(proto_job_why(pj), "protocol acts: slot 4 of array \"own\", which has 4");
    end();
}

static void limits_hold_where_they_are_asked_for(void **state)
{
    (void)state;
    begin(true, true);
    act.work = 65;
    packet();
    assert_ptr_equal(proto_switch_doomed(sw), pj);
    end();
    begin(false, true);
    act.work = 65;
    packet();
    assert_null(proto_switch_doomed(sw));
    end();
}

/* Arrays of a job that is refused are forgotten with it: the next has its own. */
static void a_refused_job_leaves_nothing(void **state)
{
    char leak[PROTO_TEXT];

    (void)state;
    begin(true, true);
    proto_job_close(sw, pj, 0, leak);
    act.refuses = -EINVAL;
    assert_int_equal(open_job(), -EINVAL);
    act.refuses = 0;
    assert_int_equal(open_job(), 0);
    act.slot = 1;
    act.from = 504, act.bytes = 1, act.work = 1;
    packet();
    assert_string_equal(watch_seen()->why, "a write behind the end of slot 1 of array \"own\"");
    end();
    assert_string_equal(calls, "open job_open job_close job_open job_open packet job_close close ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_protocol_is_wrapped),
        cmocka_unit_test(calls_are_handed_on),
        cmocka_unit_test(functions_may_be_missing),
        cmocka_unit_test(slots_have_a_guard),
        cmocka_unit_test(changes_are_compared_with_the_work),
        cmocka_unit_test(writes_behind_a_slot_are_found),
        cmocka_unit_test(writes_between_packets_are_found),
        cmocka_unit_test(a_slot_that_is_not_there_is_the_host_s_to_name),
        cmocka_unit_test(limits_hold_where_they_are_asked_for),
        cmocka_unit_test(a_refused_job_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
