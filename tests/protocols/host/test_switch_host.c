/* SPDX-License-Identifier: BSD-3-Clause */
/* What a protocol's switch half may do, and how the job ends when it does something else. */
#include "protocols/builtin.h"
#include "protocols/host/load.h"
#include "protocols/host/switch_host.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>
#include <string.h>

/* Does what the first byte of a packet's head says. */
enum act {
    ACT_NOTHING,
    ACT_BEYOND,
    ACT_WORK,
    ACT_KEEP,
    ACT_TWICE,
    ACT_FOREIGN,
    ACT_LONG,
    ACT_PARENT,
    ACT_FORWARD,
    ACT_TYPE,
    ACT_REDUCE,
    ACT_ABORT,
    ACT_TIMER,
    ACT_COUNT,
    ACT_COUNTER,
    ACT_ARRAY
};

static struct trib_array *shared_array;

static int half_open(struct trib_switch *s)
{
    shared_array = s->api->array(s, NULL, "shared", 8, 16);
    return shared_array ? 0 : -ENOSPC;
}

static int half_job_open(struct trib_switch *s, struct trib_job *job)
{
    job->self = s->api->array(s, job, "own", 4, 100);
    return job->self ? 0 : -ENOSPC;
}

static void half_job_close(struct trib_switch *s, struct trib_job *job)
{
    (void)s, (void)job;
}

static void half_packet(struct trib_switch *s, struct trib_job *job, const struct trib_packet *p)
{
    static const uint8_t data[8192];
    float x[4] = {1, 2, 3, 4};

    switch (((const uint8_t *)p->head)[0]) {
    case ACT_BEYOND:
        memset(s->api->at(s, job->self, 4), 0xff, 100);
        break;
    case ACT_WORK:
        s->api->work(s, 65, 1);
        break;
    case ACT_KEEP:
        s->api->take(s, job, job->self, 2);
        s->api->take(s, job, shared_array, 5);
        break;
    case ACT_TWICE:
        s->api->take(s, job, shared_array, 5);
        s->api->take(s, job, shared_array, 5);
        break;
    case ACT_FOREIGN:
        s->api->give(s, job, shared_array, 5);
        break;
    case ACT_LONG:
        s->api->send(s, job, TRIB_CHILDREN, NULL, 0, data, s->payload + 1);
        break;
    case ACT_PARENT:
        s->api->send(s, job, TRIB_PARENT, "x", 1, NULL, 0);
        break;
    case ACT_FORWARD:
        s->api->forward(s, job, NULL, 0, NULL, 0);
        break;
    case ACT_TYPE:
        s->api->reduce(s, x, x, 2, TRIB_TYPES, TRIB_SUM);
        break;
    case ACT_REDUCE:
        s->api->reduce(s, x, x + 2, 2, TRIB_FLOAT32, TRIB_SUM);
        s->api->send(s, job, TRIB_CHILD(1), NULL, 0, x, 8);
        break;
    case ACT_ABORT:
        s->api->abort(s, job, "because");
        break;
    case ACT_TIMER:
        s->api->timer(s, s->api->now(s) + 500);
        break;
    case ACT_COUNT:
        s->api->count(s, 1, 3);
        break;
    case ACT_COUNTER:
        s->api->count(s, 2, 3);
        break;
    case ACT_ARRAY:
        s->api->array(s, job, "late", 1, 8);
        break;
    default:
        break;
    }
}

static unsigned timers;
static void half_timer(struct trib_switch *s)
{
    (void)s;
    timers++;
}

static const char *const counters[] = {"one", "two", NULL};
static const struct trib_switch_half half = {.counters = counters,
                                             .max_bytes = 64,
                                             .max_ops = 16,
                                             .open = half_open,
                                             .job_open = half_job_open,
                                             .job_close = half_job_close,
                                             .packet = half_packet,
                                             .timer = half_timer};
static const struct trib_protocol protocol = {
    .version = TRIB_PROTOCOL_VERSION, .name = "acts", .sw = &half};

static struct {
    unsigned n;
    int to;
    uint32_t head_bytes, data_bytes;
    uint8_t data[64];
} sent;

static void emit(void *ctx, void *job, int to, const void *head, uint32_t head_bytes,
                 const void *data, uint32_t data_bytes)
{
    (void)ctx, (void)job, (void)head;
    sent.n++;
    sent.to = to;
    sent.head_bytes = head_bytes;
    sent.data_bytes = data_bytes;
    memcpy(sent.data, data ? data : "", data_bytes < 64 ? data_bytes : 64);
}

static const int64_t keys[TRIB_KEYS];

static struct proto_switch *made(size_t memory)
{
    struct proto_switch_cfg cfg = {
        .protocol = &protocol, .key = keys, .payload = 1000, .memory = memory, .emit = emit};
    struct proto_switch *s;
    char err[PROTO_TEXT];

    memset(&sent, 0, sizeof(sent));
    assert_int_equal(proto_switch_create(&s, &cfg, err), 0);
    return s;
}

static struct proto_job *opened(struct proto_switch *s, bool root)
{
    struct proto_job_cfg cfg = {.nranks = 3, .n_children = 2, .n_below = 3, .root = root};
    struct proto_job *job;
    char err[PROTO_TEXT];

    assert_int_equal(proto_job_open(s, &cfg, 100, &job, err), 0);
    return job;
}

static void act(struct proto_switch *s, struct proto_job *job, enum act what)
{
    uint64_t head = what;
    struct trib_packet p = {.head = &head, .data = &head, .head_bytes = 8, .from = TRIB_CHILD(0)};

    proto_switch_packet(s, job, &p, 200);
}

static void each_mistake_ends_the_job_by_name(void **state)
{
    static const struct {
        enum act act;
        const char *why; /* NULL: it is none */
    } rows[] = {
        {ACT_NOTHING, NULL},
        {ACT_REDUCE, NULL},
        {ACT_FORWARD, NULL},
        {ACT_TIMER, NULL},
        {ACT_COUNT, NULL},
        {ACT_BEYOND, "slot 4 of array \"own\", which has 4"},
        {ACT_WORK, "work of 65 bytes and 1 operations on a packet, declared are 64 and 16"},
        {ACT_TWICE, "takes slot 5 of array \"shared\", which is taken"},
        {ACT_FOREIGN, "gives slot 5 of array \"shared\", which it has not taken"},
        {ACT_LONG, "sends a packet of 0 and 1001 bytes, at most 64 and 1000 fit"},
        {ACT_PARENT, "sends to 0x3001, which this switch does not have"},
        {ACT_TYPE, "reduction 0 of type 10"},
        {ACT_ABORT, "because"},
        {ACT_COUNTER, "counts counter 2, its switch half has 2"},
        {ACT_ARRAY, "array() outside of open() and job_open()"},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct proto_switch *s = made(4096);
        struct proto_job *job = opened(s, true), *other = opened(s, true);
        char leak[PROTO_TEXT];

        act(s, job, rows[i].act);
        if (rows[i].why) {
            assert_non_null(proto_job_why(job));
            assert_non_null(strstr(proto_job_why(job), rows[i].why));
            assert_ptr_equal(proto_switch_doomed(s), job);
        } else {
            assert_null(proto_job_why(job));
            assert_null(proto_switch_doomed(s));
        }
        assert_null(proto_job_why(other)); /* others go on */
        proto_job_close(s, job, 300, leak);
        proto_job_close(s, other, 300, leak);
        assert_false(proto_switch_busy(s));
        proto_switch_destroy(s);
    }
}

static void work_is_counted_by_packet(void **state)
{
    struct proto_switch *s = made(4096);
    struct proto_job *job = opened(s, true);
    char leak[PROTO_TEXT];

    (void)state;
    for (unsigned i = 0; i < 20; i++)
        act(s, job, ACT_REDUCE);
    assert_null(proto_job_why(job));
    assert_int_equal(proto_switch_counters(s)->work_bytes, 160);
    assert_int_equal(proto_switch_counters(s)->work_ops, 40);
    assert_int_equal(sent.n, 20);
    assert_int_equal(sent.to, TRIB_CHILD(1));
    assert_true(((float *)(void *)sent.data)[1] == 6);
    proto_job_close(s, job, 300, leak);
    assert_string_equal(leak, "");
    proto_switch_destroy(s);
}

static void what_a_job_keeps_is_named_and_given_back(void **state)
{
    struct proto_switch *s = made(4096);
    struct proto_job *job = opened(s, true), *other;
    char leak[PROTO_TEXT];

    (void)state;
    act(s, job, ACT_KEEP);
    assert_int_equal(proto_switch_counters(s)->slots, 2);
    other = opened(s, true);
    act(s, other, ACT_FOREIGN); /* another job's */
    assert_non_null(proto_job_why(other));
    proto_job_close(s, job, 300, leak);
    assert_non_null(strstr(leak, "still has 2 slots"));
    assert_non_null(strstr(leak, "slot 5 of array \"shared\""));
    assert_int_equal(proto_switch_counters(s)->slots, 0);
    assert_int_equal(proto_switch_counters(s)->leaked, 2);
    proto_job_close(s, other, 300, leak);
    assert_string_equal(leak, "");
    job = opened(s, true);
    act(s, job, ACT_KEEP);
    assert_null(proto_job_why(job));
    proto_job_close(s, job, 300, leak);
    proto_switch_destroy(s);
}

static void memory_is_limited_and_comes_back(void **state)
{
    struct proto_job_cfg cfg = {.nranks = 2, .n_children = 2, .n_below = 2, .root = true};
    struct proto_switch_cfg none = {
        .protocol = &protocol, .key = keys, .payload = 1000, .memory = 100, .emit = emit};
    struct proto_switch *s = made(8 * 16 + 2 * 4 * 104);
    struct proto_job *a = opened(s, true), *b = opened(s, true), *c;
    char err[PROTO_TEXT], leak[PROTO_TEXT];

    (void)state;
    assert_int_equal(proto_job_open(s, &cfg, 100, &c, err), -ENOSPC);
    assert_non_null(strstr(err, "\"own\" wants 416 bytes, 0 of 960 left"));
    proto_job_close(s, a, 300, leak);
    assert_int_equal(proto_job_open(s, &cfg, 100, &a, err), 0);
    proto_job_close(s, a, 300, leak);
    proto_job_close(s, b, 300, leak);
    assert_int_equal(proto_switch_counters(s)->memory, 8 * 16);
    assert_int_equal(proto_switch_counters(s)->memory_peak, 960);
    proto_switch_destroy(s);
    assert_int_equal(proto_switch_create(&s, &none, err), -ENOSPC);
    assert_non_null(strstr(err, "\"shared\" wants 128 bytes, 100 of 100 left"));
}

/* A slot of 100 bytes takes 104. */
static void memory_is_limited_by_whole_slots(void **state)
{
    struct proto_job_cfg cfg = {.nranks = 2, .n_children = 2, .n_below = 2, .root = true};
    struct proto_switch *s = made(8 * 16 + 4 * 104 - 1);
    struct proto_job *job;
    char err[PROTO_TEXT];

    (void)state;
    assert_int_equal(proto_job_open(s, &cfg, 100, &job, err), -ENOSPC);
    assert_int_equal(proto_switch_counters(s)->memory_peak, 8 * 16);
    proto_switch_destroy(s);
}

static void timers_run_once_when_they_are_due(void **state)
{
    struct proto_switch *s = made(4096);
    struct proto_job *job = opened(s, true);
    char leak[PROTO_TEXT];

    (void)state;
    timers = 0;
    assert_int_equal(proto_switch_next(s), TRIB_NEVER);
    act(s, job, ACT_TIMER);
    assert_int_equal(proto_switch_next(s), 700);
    proto_switch_tick(s, 699);
    assert_int_equal(timers, 0);
    proto_switch_tick(s, 700);
    proto_switch_tick(s, 701);
    assert_int_equal(timers, 1);
    assert_int_equal(proto_switch_next(s), TRIB_NEVER);
    proto_job_close(s, job, 300, leak);
    proto_switch_destroy(s);
}

/* Each alone; what tables have room for. */
static void names_of_keys_and_counters(void)
{
    static const struct {
        const char *name;
        bool good;
    } words[] = {{"a", true},
                 {"sent_Again-2", true},
                 {"abcdefghijklmnopqrstuvwxyz01234", true},
                 {"abcdefghijklmnopqrstuvwxyz012345", false},
                 {"", false},
                 {"two words", false},
                 {"line\n", false}};
    const char *names[TRIB_COUNTERS + 2] = {0};
    struct trib_rank_half rank = *trib_atp.rank;
    struct trib_switch_half sw = *trib_atp.sw;
    struct trib_key key[2] = {{.least = 0, .usual = 1, .most = 2}, {0}};
    struct trib_protocol p = trib_atp;
    char err[PROTO_TEXT];

    p.name = "names";
    p.rank = &rank;
    p.sw = &sw;
    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        names[0] = key[0].name = words[i].name;
        key[0].usual = words[i].good ? 3 : 1; /* what is added stays: refused for its range, then */
        p.keys = key;
        assert_int_equal(proto_add(&p, err), -EINVAL);
        assert_non_null(
            strstr(err, words[i].good ? "out of its range" : "a key's name is not 1 to 31"));
        p.keys = trib_atp.keys;
        if (words[i].good)
            continue;
        rank.counters = names;
        assert_int_equal(proto_add(&p, err), -EINVAL);
        assert_non_null(strstr(err, "a counter's name is not 1 to 31"));
        rank.counters = trib_atp.rank->counters;
        sw.counters = names;
        assert_int_equal(proto_add(&p, err), -EINVAL);
        assert_non_null(strstr(err, "a counter's name is not 1 to 31"));
        sw.counters = trib_atp.sw->counters;
    }
    for (unsigned i = 0; i <= TRIB_COUNTERS; i++)
        names[i] = words[i % 3].name;
    rank.counters = names;
    assert_int_equal(proto_add(&p, err), -EINVAL);
    assert_non_null(strstr(err, "more than 16 counters"));
}

static void other_versions_and_names_are_refused_by_name(void **state)
{
    static const struct trib_rank_half rank;
    struct trib_protocol p = protocol;
    char err[PROTO_TEXT];

    (void)state;
    p.version = TRIB_PROTOCOL_VERSION + 1;
    assert_int_equal(proto_add(&p, err), -EPROTO);
    assert_non_null(strstr(err, "found version 3 of the protocol interface, expected 2"));
    p = protocol;
    p.name = "Upper";
    assert_int_equal(proto_add(&p, err), -EINVAL);
    p = protocol;
    p.rank = &rank;
    assert_int_equal(proto_add(&p, err), -EINVAL);
    names_of_keys_and_counters();
    assert_int_equal(proto_load("/nowhere.so", err), -ENOENT);
    assert_non_null(strstr(err, "/nowhere.so"));
    assert_int_equal(proto_load("libjansson.so.4", err), -ENOENT);
    assert_non_null(strstr(err, "found no symbol trib_protocol"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_mistake_ends_the_job_by_name),
        cmocka_unit_test(work_is_counted_by_packet),
        cmocka_unit_test(what_a_job_keeps_is_named_and_given_back),
        cmocka_unit_test(memory_is_limited_and_comes_back),
        cmocka_unit_test(memory_is_limited_by_whole_slots),
        cmocka_unit_test(timers_run_once_when_they_are_due),
        cmocka_unit_test(other_versions_and_names_are_refused_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
