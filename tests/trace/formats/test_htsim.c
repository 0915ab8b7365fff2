/* SPDX-License-Identifier: BSD-3-Clause */
/* htsim's connection matrices: flows, triggers and collectives become operations; mistakes are named by line. */
#include "tests/trace/trace_test.h"

#define HEAD "Nodes 4\n"

static void look(struct looked *l, const char *text)
{
    look_bytes(l, "x.cm", text, strlen(text), NULL);
}

static void flows_are_sends_and_receives(void **state)
{
    struct looked l;

    (void)state;
    look(&l, "# flows\n" HEAD
             "Connections 3\n0->1 id 1 start 0 size 100\n2->1 size 50 start 2500000.5 id 2\n"
             "1->1 start 7 size 0 prio 3\n");
    assert_string_equal(look_says(&l, -1), "");
    assert_int_equal(l.g.n_ranks, 4);
    assert_int_equal(l.d.rank[0].bytes[APP_SEND], 100);
    assert_int_equal(l.d.rank[1].bytes[APP_RECV], 150);
    assert_int_equal(l.d.rank[2].bytes[APP_SEND], 50);
    assert_int_equal(l.d.way.met, 3);
    assert_int_equal(l.d.way.ns, 2500);
    look_end(&l);
}

/* 0 sends to 1 at 1 us; when 1 has it, 2 sends to 3 and 1 to 0. */
static void a_trigger_waits_for_what_fires_it(void **state)
{
    struct looked l;

    (void)state;
    look(&l, HEAD "Triggers 1\n0->1 id 1 start 1000000 size 8 recv_done_trigger 5\n"
                  "2->3 id 2 trigger 5 size 8\n1->0 id 3 trigger 5 size 8\ntrigger id 5 oneshot\n");
    assert_string_equal(look_says(&l, -1), "");
    assert_int_equal(l.d.all.bytes[APP_SEND], 24);
    assert_int_equal(l.d.way.ns, 1000);
    for (uint32_t r = 1; r < 3; r++) { /* those that send by the trigger wait */
        const struct app_rank *rank = &l.g.rank[r];

        for (uint32_t i = 0; i < rank->n; i++)
            if (rank->op[i].kind == APP_SEND && rank->op[i].bytes)
                assert_true(rank->first[i + 1] > rank->first[i]);
    }
    look_end(&l);
}

/* What fires a oneshot second starts nothing. */
static void a_oneshot_fires_once(void **state)
{
    struct looked l;

    (void)state;
    look(&l, HEAD
         "0->1 start 1000 size 1 send_done_trigger 1\n2->1 start 9000 size 1 send_done_trigger 1\n"
         "3->0 trigger 1 size 1\ntrigger id 1 oneshot\n");
    assert_string_equal(look_says(&l, -1), "");
    assert_int_equal(l.d.rank[3].n[APP_RECV], 1);
    look_end(&l);
}

/* A barrier of two; a multishot whose second flow waits for what fires it second. */
static void barriers_and_multishots(void **state)
{
    struct looked l;

    (void)state;
    look(&l, HEAD
         "0->1 start 1000 size 1 send_done_trigger 1\n2->1 start 3000 size 1 send_done_trigger 1\n"
         "3->0 trigger 1 size 1\ntrigger id 1 barrier count 2\n");
    assert_string_equal(look_says(&l, -1), "");
    assert_int_equal(l.d.way.ns, 3);
    assert_int_equal(l.d.rank[3].n[APP_RECV], 2);
    look_end(&l);
    look(&l, HEAD
         "0->1 start 1000 size 1 send_done_trigger 1\n0->1 start 3000 size 1 send_done_trigger 1\n"
         "2->0 trigger 1 size 1\n3->0 trigger 1 size 1\ntrigger id 1 multishot\n");
    assert_string_equal(look_says(&l, -1), "");
    assert_int_equal(l.d.rank[2].n[APP_RECV], 1);
    assert_int_equal(l.d.rank[3].n[APP_RECV], 1);
    assert_int_equal(l.d.way.rank == 0 || l.d.way.rank == 3, 1);
    look_end(&l);
}

static void collectives_are_on_groups(void **state)
{
    struct looked l;

    (void)state;
    look(&l, HEAD "Grp 3 1 0\n1->0 id 1 start_bcast 0 size 64 recv_done_trigger 2\n0->0 id 2 "
                  "start_allreduce 0 size 32\n"
                  "2->0 trigger 2 size 5\ntrigger id 2 oneshot\n");
    assert_string_equal(look_says(&l, -1), "");
    assert_int_equal(l.d.all.coll_n[APP_BROADCAST], 3);
    assert_int_equal(l.d.all.coll_bytes[APP_ALL_REDUCE], 96);
    assert_int_equal(l.g.rank[3].op[0].peer, 1); /* the root is the second of the group */
    assert_int_equal(l.d.rank[2].n[APP_RECV], 3);
    look_end(&l);
}

static const struct {
    const char *text, *says;
} refused[] = {
    {"Connections 1\n", "x.cm: found the beginning of no format that is known"},
    {"Nodes x\n", "x.cm:1: found \"x\", expected a number"},
    {"Nodes 9999999\n", "x.cm:1: found \"9999999\", expected a number"},
    {HEAD "Nodes 4\n", "x.cm:2: found \"Nodes\", expected Nodes once"},
    {HEAD "Connections 1 2\n", "x.cm:2: found \"2\", expected the end of the line"},
    {HEAD "hello\n", "x.cm:2: found \"hello\", expected Nodes, Connections"},
    {HEAD "0-1 start 0 size 1\n", "x.cm:2: found \"0-1\", expected Nodes"},
    {HEAD "0->x start 0 size 1\n", "x.cm:2: found \"0->x\", expected two nodes"},
    {HEAD "0->4 start 0 size 1\n", "x.cm: line 2: found 0->4, expected nodes below 4"},
    {HEAD "4->0 start 0 size 1\n", "x.cm: line 2: found 4->0, expected nodes below 4"},
    {HEAD "0->1 size 1\n", "x.cm:2: found the end of the line, expected start or trigger"},
    {HEAD "0->1 start 0\n", "x.cm:2: found the end of the line, expected a size"},
    {HEAD "0->1 start 0 size -1\n", "x.cm:2: found \"-1\", expected a size in bytes"},
    {HEAD "0->1 start 0 trigger 1 size 1\n",
     "x.cm:2: found \"trigger\", expected one start or trigger"},
    {HEAD "0->1 start_scan 0 size 1\n", "x.cm:2: found \"start_scan\", expected start, trigger"},
    {HEAD "0->1 start 0 size 1 color 3\n", "x.cm:2: found \"color\", expected id, start"},
    {HEAD "0->0 start_bcast 0 size 1\n",
     "x.cm: line 2: found 0->0, expected a member of 0 of group 0"},
    {HEAD "Grp 0 1\n2->0 start_bcast 0 size 1\n",
     "x.cm: line 3: found 2->0, expected a member of 2"},
    {HEAD "Grp\n", "x.cm:2: found the end of the line, expected members of a group"},
    {HEAD "Grp 0 7\n", "x.cm: line 2: found node 7, expected one below 4"},
    {HEAD "Grp 1 1\n", "x.cm: line 2: found node 1 twice, expected each member once"},
    {HEAD "trigger 1 oneshot\n", "x.cm:2: found \"1\", expected id of the trigger"},
    {HEAD "trigger id 1 twice\n",
     "x.cm:2: found \"twice\", expected oneshot, multishot or barrier"},
    {HEAD "trigger id 1 barrier 2\n", "x.cm:2: found \"2\", expected count of the barrier"},
    {HEAD "trigger id 1 oneshot\ntrigger id 1 oneshot\n",
     "x.cm: line 3: found the trigger of line 2 again, expected another"},
    {HEAD "Connections 2\n0->1 start 0 size 1\n",
     "x.cm: found 1 connections, expected the 2 that it says"},
    {HEAD "0->1 trigger 3 size 1\n", "x.cm: found trigger 3, expected one that is declared"},
    {HEAD "0->1 trigger 3 size 1\ntrigger id 3 oneshot\n",
     "x.cm: found trigger 3 that nothing fires, expected a flow with it"},
    {HEAD "0->1 start 0 size 1 send_done_trigger 3\ntrigger id 3 barrier count 2\n",
     "x.cm:3: found 1 flows that fire it, expected the 2 of the barrier"},
    {HEAD "0->1 trigger 3 size 1 recv_done_trigger 3\ntrigger id 3 oneshot\n",
     "x.cm:2: found an operation of rank"},
};

static void mistakes_are_named_by_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct looked l;
        bool said = false;

        look(&l, refused[i].text);
        for (int k = -1; k < (int)FINDING_KINDS; k++)
            said |= !strncmp(look_says(&l, k), refused[i].says, strlen(refused[i].says));
        if (!said)
            fail_msg("%s: found \"%s\", expected \"%s\"", refused[i].text, look_says(&l, -1),
                     refused[i].says);
        look_end(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flows_are_sends_and_receives),
        cmocka_unit_test(a_trigger_waits_for_what_fires_it),
        cmocka_unit_test(a_oneshot_fires_once),
        cmocka_unit_test(barriers_and_multishots),
        cmocka_unit_test(collectives_are_on_groups),
        cmocka_unit_test(mistakes_are_named_by_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
