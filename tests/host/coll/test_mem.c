/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered ranges and the workspaces of operations, at their bounds. */
#include "tests/host/coll/coll_fixture.h"

#include "host/coll/comm.h"

#include <errno.h>

#define DIM(a) (sizeof(a) / sizeof((a)[0]))

static struct fixture *two_ranks(void)
{
    struct fixture *g = fixture_new(2, 1, 4096, NULL);

    fixture_connect(g, 1u << ALGO_RING, FIXTURE_RANKS);
    assert_true(fixture_run(g, PS_PER_S, false, fixture_ready));
    return g;
}

static void a_range_is_in_a_region_as_a_whole(void **state)
{
    static uint8_t mem[300];
    static const struct {
        int off;
        size_t bytes;
        bool inside;
    } rows[] = {
        {100, 100, true},       {100, 0, true},
        {100, 1, true},         {199, 1, true},
        {150, 50, true},        {200, 0, true},
        {99, 1, false},         {99, 100, false},
        {200, 1, false},        {199, 2, false},
        {101, 100, false},      {100, 101, false},
        {100, SIZE_MAX, false}, {150, SIZE_MAX - 49, false},
    };
    struct comm *c = calloc(1, sizeof(*c));
    struct region r = {.addr = mem + 100, .bytes = 100}, other = {.addr = mem, .bytes = 50};

    (void)state;
    other.next = &r;
    c->regions = &other;
    for (unsigned i = 0; i < DIM(rows); i++)
        for (unsigned input = 0; input < 2; input++) {
            bool inside = region_of(c, mem + rows[i].off, rows[i].bytes, input) == &r;

            if (inside != rows[i].inside)
                fail_msg("row %u", i);
            r.input = true; /* operations that write do not find it */
            inside = region_of(c, mem + rows[i].off, rows[i].bytes, input) == &r;
            assert_int_equal(inside, rows[i].inside && input);
            r.input = false;
        }
    free(c);
}

static void a_range_is_registered_once_and_dropped_as_it_was(void **state)
{
    struct fixture *g = two_ranks();
    struct comm *c = g->comm[0];
    static uint8_t mem[8192];
    const struct region *r;

    (void)state;
    assert_int_equal(comm_deregister(c, mem, sizeof(mem)), -ENOENT);
    assert_int_equal(comm_register(c, mem, sizeof(mem)), 0);
    r = c->regions;
    assert_ptr_equal(r->addr, mem);
    assert_int_equal(r->bytes, sizeof(mem));
    assert_false(r->input);
    assert_non_null(r->mr[0]);
    assert_int_equal(r->remote_addr, (uintptr_t)mem % MEM_PAGE);
    assert_int_equal(comm_register(c, mem + 1, sizeof(mem) - 1), 0); /* within it */
    assert_int_equal(comm_register_input(c, mem, sizeof(mem)), 0);
    assert_ptr_equal(c->regions, r);
    assert_int_equal(comm_deregister(c, mem + 1, sizeof(mem) - 1), -ENOENT);
    assert_int_equal(comm_deregister(c, mem, sizeof(mem) - 1), -ENOENT);
    assert_int_equal(comm_deregister(c, mem, sizeof(mem)), 0);
    assert_null(c->regions);
    assert_int_equal(comm_register_input(c, mem, 100), 0);
    assert_true(c->regions->input);
    assert_int_equal(comm_register(c, mem, 100), 0); /* to be written, too */
    assert_false(c->regions->input);
    assert_non_null(c->regions->next);
    assert_null(c->regions->next->next);
    fixture_free(g, false);
}

static void a_region_in_use_is_not_dropped(void **state)
{
    struct fixture *g = two_ranks();
    struct comm *c = g->comm[0];
    struct coll_req last = {.next = NULL}, first = {.next = &last};
    static uint8_t mem[64];

    (void)state;
    assert_int_equal(comm_register(c, mem, sizeof(mem)), 0);
    c->exec.head = &first;
    last.in = c->regions;
    assert_int_equal(comm_deregister(c, mem, sizeof(mem)), -EBUSY);
    last.in = NULL;
    last.out = c->regions;
    assert_int_equal(comm_deregister(c, mem, sizeof(mem)), -EBUSY);
    last.out = NULL;
    assert_int_equal(comm_deregister(c, mem, sizeof(mem)), 0);
    c->exec.head = NULL;
    fixture_free(g, false);
}

static size_t work_for(struct comm *c, struct coll_req *r, uint64_t tmp)
{
    char err[COMM_TEXT] = "";

    *r = (struct coll_req){.s = {.tmp_bytes = tmp}};
    assert_int_equal(workspace_get(c, r, err), 0);
    return r->tmp ? r->tmp->mem.bytes : 0;
}

/* From 64 KiB on by doubling; a larger one replaces it, at once where no operation is under way. */
static void a_workspace_grows_by_doubling(void **state)
{
    static const struct {
        uint64_t tmp, room;
        unsigned n; /* workspaces */
    } rows[] = {{0, 0, 0},      {1, 65536, 1},       {65536, 65536, 1},  {65537, 131072, 1},
                {1, 131072, 1}, {131072, 131072, 1}, {262145, 524288, 1}};
    struct fixture *g = two_ranks();
    struct comm *c = g->comm[0];
    struct coll_req r, running = {0};
    unsigned n = 0;

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++) {
        assert_int_equal(work_for(c, &r, rows[i].tmp), rows[i].room);
        n = 0;
        for (const struct workspace *w = c->work[WORK_TMP]; w; w = w->next)
            n++;
        assert_int_equal(n, rows[i].n);
    }
    c->exec.head = &running; /* it may use the one that is there */
    assert_int_equal(work_for(c, &r, 524289), 1048576);
    assert_int_equal(c->work[WORK_TMP]->next->mem.bytes, 524288);
    assert_null(c->work[WORK_TMP]->next->next);
    assert_null(c->work[WORK_STAGE]);
    c->exec.head = NULL;
    assert_int_equal(work_for(c, &r, 1048577), 2097152);
    assert_null(c->work[WORK_TMP]->next);
    fixture_free(g, false);
}

static void a_workspace_has_at_most_four_gigabytes(void **state)
{
    static const struct {
        uint64_t tmp, stage;
        const char *says;
    } rows[] = {
        {COMM_TMP_MAX + 1, 0, "a workspace of 4294967297 bytes: at most 4 GiB are possible"},
        {1, COMM_TMP_MAX + 1, "a workspace of 4294967297 bytes: at most 4 GiB are possible"},
        {0, COMM_TMP_MAX + 1, "a workspace of 4294967297 bytes: at most 4 GiB are possible"},
        {UINT64_MAX, 0, "a workspace of 18446744073709551615 bytes: at most 4 GiB are possible"},
    };
    struct fixture *g = two_ranks();

    (void)state;
    for (unsigned i = 0; i < DIM(rows); i++) {
        struct coll_req r = {.s = {.tmp_bytes = rows[i].tmp, .stage_bytes = rows[i].stage}};
        char err[COMM_TEXT] = "";

        assert_int_equal(workspace_get(g->comm[0], &r, err), -ENOMEM);
        assert_string_equal(err, rows[i].says);
    }
    for (unsigned k = 0; k < 2; k++) {
        struct coll_req r = {.s = {.tmp_bytes = k, .stage_bytes = 70000}};
        char err[COMM_TEXT] = "";

        assert_int_equal(workspace_get(g->comm[0], &r, err), 0);
        assert_int_equal(r.tmp != NULL, k);
        assert_int_equal(r.stage->mem.bytes, 131072);
    }
    fixture_free(g, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_range_is_in_a_region_as_a_whole),
        cmocka_unit_test(a_range_is_registered_once_and_dropped_as_it_was),
        cmocka_unit_test(a_region_in_use_is_not_dropped),
        cmocka_unit_test(a_workspace_grows_by_doubling),
        cmocka_unit_test(a_workspace_has_at_most_four_gigabytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
