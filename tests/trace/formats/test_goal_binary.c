/* SPDX-License-Identifier: BSD-3-Clause */
/* GOAL in binary: a schedule of two ranks is read; every field that is changed, and every cut, is refused or noted. */
#include "tests/trace/trace_test.h"

#include <endian.h>

#define BYTES 280

struct bytes {
    uint8_t at[BYTES];
    size_t n;
};

static void add_number(struct bytes *b, uint64_t v, size_t width)
{
    v = htole64(v);
    memcpy(b->at + b->n, &v, width);
    b->n += width;
}

static void add_node(struct bytes *b, uint32_t deps, uint8_t type, uint32_t peer, uint64_t size,
                     uint32_t waiters, uint32_t first)
{
    add_number(b, deps, 4);
    add_number(b, type, 1);
    add_number(b, peer, 4);
    add_number(b, size, 8);
    add_number(b, 7, 4); /* tag */
    add_number(b, 0, 2);
    add_number(b, waiters, 4);
    add_number(b, first, 4);
    add_number(b, 0, 8);
}

/* Rank 0: calc 1000, then a send of 64 B to rank 1; rank 1: the receive. */
static void schedule(struct bytes *b)
{
    b->n = 0;
    add_number(b, 4223, 8);
    add_number(b, 2, 4);
    add_number(b, 0, 2);
    add_number(b, 38, 8);
    add_number(b, 38 + 94, 8);
    add_number(b, 38 + 94, 8);
    add_number(b, 38 + 94 + 51, 8);
    add_number(b, 2, 4); /* nodes */
    add_number(b, 1, 4);
    add_number(b, 0, 4);
    add_node(b, 0, 3, 0, 1000, 1, 0);
    add_node(b, 1, 1, 1, 64, 0, 0);
    add_number(b, 1, 4); /* appendix */
    add_number(b, 1, 4);
    add_number(b, 1, 4);
    add_number(b, 0, 4);
    add_node(b, 0, 2, 0, 64, 0, 0);
}

static void a_schedule_is_read(void **state)
{
    struct bytes b;
    struct looked l;

    (void)state;
    schedule(&b);
    look_bytes(&l, "x.bin", b.at, b.n, NULL);
    assert_string_equal(look_says(&l, -1), "");
    assert_int_equal(l.d.all.n[APP_SEND], 1);
    assert_int_equal(l.d.all.bytes[APP_RECV], 64);
    assert_int_equal(l.d.all.ns[APP_COMPUTE], 1000);
    assert_int_equal(l.d.rank[0].deps, 1);
    assert_int_equal(l.d.way.ns, 1000);
    assert_int_equal(l.d.way.met, 1);
    look_end(&l);
}

/* n 0: the file is cut off at `at`; else n bytes from there on become `value`. */
static const struct {
    const char *name;
    size_t at, n;
    uint64_t value;
    const char *says;
} changed[] = {
    {"another magic", 0, 8, 4224, "x.bin: found the beginning of no format that is known"},
    {"what a run has spoilt", 0, 8, 2342, "x.bin: found a schedule that a run has spoilt"},
    {"too many ranks", 8, 4, UINT32_MAX, "x.bin: found 4294967295 ranks, expected 1048576 at most"},
    {"more ranks than rows", 8, 4, 3, "x.bin: rank 0: found a block at byte 38, expected 54"},
    {"a block elsewhere", 14, 8, 39, "x.bin: rank 0: found a block at byte 39, expected 38"},
    {"a block that ends before it begins", 22, 8, 1,
     "x.bin: rank 0: found the end of a block at byte 1"},
    {"a block as large as the world", 38, 8, 1ull << 60, "x.bin: rank 1: found the end of a block"},
    {"a block beyond the file", 38, 8, 1000, "x.bin: byte 140: found 51 bytes, expected 868"},
    {"more nodes than bytes", 46, 4, 3, "x.bin: rank 0: found bytes of a block: 94, expected 129"},
    {"nodes beyond 32 bits of bytes", 46, 4, UINT32_MAX,
     "x.bin: rank 0: found bytes of a block: 94"},
    {"more roots than nodes", 50, 4, 3, "x.bin: rank 0: found roots: 3, expected 2"},
    {"a root that waits", 54, 4, 1, "x.bin: rank 0: found root 1, expected a record without"},
    {"a root beyond", 54, 4, 9, "x.bin: rank 0: found root 9, expected a record without"},
    {"a dependency that is not told", 58, 4, 1,
     "x.bin: rank 0, record 0: found 0 dependencies, expected the 1"},
    {"an unknown type", 62, 1, 9,
     "x.bin: rank 0, record 0: found type 9, expected 1, 2, 3 or 10 to 14"},
    {"an appendix beyond the block", 85, 4, 5,
     "x.bin: rank 0, record 0: found an appendix up to place 6"},
    {"an appendix one beyond the block", 85, 4, 1,
     "x.bin: rank 0, record 0: found an appendix up to place 2"},
    {"an appendix that is used twice", 81, 4, 2,
     "x.bin: rank 0: found dependencies: 2, expected 1"},
    {"waiters without end", 81, 4, UINT32_MAX, "x.bin: rank 0: found dependencies: 4294967295"},
    {"a waiter that is not there", 136, 4, 2,
     "x.bin: rank 0, record 0: found record 2, expected one below 2"},
    {"a waiter that is itself", 136, 4, 0,
     "x.bin: rank 0, record 0: found an operation of rank 0 that waits"},
    {"a peer that is not there", 102, 4, 2,
     "x.bin: rank 0, record 1: found rank 2, expected one below 2"},
    {"another size", 106, 8, 65,
     "x.bin: rank 1, record 0: found a receive of 64 B by rank 1, expected the 65 B"},
    {"a collective on no group", 62, 1, 12,
     "x.bin: rank 0, record 0: found a collective on group 0, expected one that is defined"},
    {"a cut header", 9, 0, 0, "x.bin: byte 0: found 9 bytes, expected 14 of the header"},
    {"a cut table", 20, 0, 0, "x.bin: byte 14: found 6 bytes, expected 16 of the table of ranks"},
    {"a cut block", 100, 0, 0, "x.bin: byte 46: found 54 bytes, expected 94 of a rank's block"},
    {"a rank cut off", 140, 0, 0,
     "x.bin: rank 1: found a block that ends with byte 0, expected 51"},
};

static void changes_are_refused_or_noted(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(changed) / sizeof(changed[0]); i++) {
        struct looked l;
        struct bytes b;
        uint64_t v = htole64(changed[i].value);
        bool said = false;

        schedule(&b);
        if (changed[i].n)
            memcpy(b.at + changed[i].at, &v, changed[i].n);
        else
            b.n = changed[i].at;
        look_bytes(&l, "x.bin", b.at, b.n, NULL);
        for (int k = -1; k < (int)FINDING_KINDS; k++)
            said |= !strncmp(look_says(&l, k), changed[i].says, strlen(changed[i].says));
        if (!said)
            fail_msg("%s: found \"%s\", expected \"%s\"", changed[i].name, look_says(&l, -1),
                     changed[i].says);
        look_end(&l);
    }
}

static void bytes_behind_the_end_are_refused(void **state)
{
    struct bytes b;
    struct looked l;

    (void)state;
    schedule(&b);
    add_number(&b, 0, 1);
    look_bytes(&l, "x.bin", b.at, b.n, NULL);
    assert_string_equal(l.err, "x.bin: found bytes behind the last rank, expected the end");
    look_end(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_schedule_is_read),
        cmocka_unit_test(changes_are_refused_or_noted),
        cmocka_unit_test(bytes_behind_the_end_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
