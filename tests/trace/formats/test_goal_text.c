/* SPDX-License-Identifier: BSD-3-Clause */
/* GOAL as text: what the grammar allows is read, and each mistake is named with its line. */
#include "tests/trace/trace_test.h"

#include <jansson.h>

#define HEAD      "num_ranks 2\n"
#define PEER      "rank 1 {\n}\n"
#define ONE(text) HEAD "rank 0 {\n" text "}\n" PEER

static const struct {
    const char *name, *text, *groups, *says;
} refused[] = {
    {"nothing", "", NULL, "x.goal: found no bytes, expected a trace: "},
    {"no trace", "hello\n", NULL, "x.goal: found the beginning of no format that is known"},
    {"no number of ranks", "num_ranks\n", NULL,
     "x.goal:1: found the end of the line, expected a number of ranks"},
    {"too many ranks", "num_ranks 1048577\n", NULL,
     "x.goal:1: found \"1048577\", expected a number"},
    {"a number beyond 64 bits", "num_ranks 99999999999999999999999\n", NULL,
     "x.goal:1: found \"999"},
    {"a rank too few", HEAD "rank 0 {\n}\n", NULL,
     "x.goal: found the end of the file after 1 ranks, expected 2"},
    {"a rank too many", HEAD "rank 0 {\n}\n" PEER "rank 2 {\n}\n", NULL,
     "x.goal:6: found \"2\", expected no more ranks than num_ranks says"},
    {"ranks out of order", HEAD PEER "rank 0 {\n}\n", NULL,
     "x.goal:2: found \"1\", expected rank 0 of 2"},
    {"a rank again", HEAD "rank 0 {\n}\nrank 0 {\n}\n", NULL,
     "x.goal: line 4: found rank 0, expected rank 1 of 2"},
    {"no brace", HEAD "rank 0\ncalc 1\n}\n", NULL, "x.goal:3: found \"calc\", expected \"{\""},
    {"cut off", HEAD "rank 0 {\ncalc 1\n", NULL,
     "x.goal: found the end of the file after 1 ranks, the last without its end, expected 2"},
    {"cut off in a comment", HEAD "rank 0 {\n}\n/* and", NULL,
     "x.goal: found the end of the file after 1 ranks inside of a comment, expected 2"},
    {"a statement outside of ranks", HEAD "calc 1\n", NULL,
     "x.goal:2: found \"calc\", expected rank"},
    {"no operation", ONE("l1: jump 3\n"), NULL,
     "x.goal:3: found \"jump\", expected calc, send, recv or coll"},
    {"a label alone", ONE("l1\n"), NULL,
     "x.goal:3: found the end of the line, expected \":\", requires or irequires"},
    {"two statements on a line", ONE("calc 1 calc 2\n"), NULL,
     "x.goal:3: found \"calc\", expected the end of the line"},
    {"a comment behind an operation", ONE("calc 1 // one\n"), NULL,
     "x.goal:3: found \"/\", expected the end of the line"},
    {"a size without b", ONE("send 8 to 1\n"), NULL,
     "x.goal:3: found \"to\", expected b behind the size"},
    {"a negative size", ONE("send -8b to 1\n"), NULL, "x.goal:3: found \"-8b\", expected a size"},
    {"a receive to", ONE("recv 8b to 1\n"), NULL, "x.goal:3: found \"to\", expected from RANK"},
    {"a send to any", ONE("send 8b to -1\n"), NULL, "x.goal:3: found \"-1\", expected a rank"},
    {"a peer beyond 32 bits", ONE("send 8b to 4294967296\n"), NULL,
     "x.goal:3: found \"4294967296\", expected a rank"},
    {"a tag of letters", ONE("send 8b to 1 tag x\n"), NULL,
     "x.goal:3: found \"x\", expected a tag"},
    {"options in another order", ONE("send 8b to 1 cpu 1 tag 2\n"), NULL,
     "x.goal:3: found \"tag\", expected the end of the line"},
    {"a cpu that would be cut off", ONE("calc 1 cpu 256\n"), NULL,
     "x.goal:3: found \"256\", expected a cpu from 0 to 255"},
    {"a nic of calc", ONE("calc 1 nic 0\n"), NULL,
     "x.goal:3: found \"nic\", expected the end of the line"},
    {"a fraction", ONE("calc 1.5\n"), NULL, "x.goal:3: found \".\", expected the end of the line"},
    {"no collective", ONE("coll scan 8b 0 0 -1\n"), NULL,
     "x.goal:3: found \"scan\", expected bcast"},
    {"a collective without root", ONE("coll bcast 8b 0 0\n"), NULL,
     "x.goal:3: found the end of the line, expected the root's rank, or -1"},
    {"a dependency on a number", ONE("a: calc 1\na requires 7\n"), NULL,
     "x.goal:4: found \"7\", expected a label"},
    {"a group of words", ONE(""), "Grp 0 x\n", "x.groups:1: found \"x\", expected a rank below"},
    {"a member twice", ONE(""), "0 1\n1 0 1\n",
     "x.groups:2: found \"rank 1 twice\", expected each member once"},
    {"a group of nobody", ONE(""), "Grp\n",
     "x.groups:1: found the end of the line, expected members"},
};

static void mistakes_are_refused_by_line(void **state)
{
    struct looked l;

    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        look_bytes(&l, "x.goal", refused[i].text, strlen(refused[i].text), refused[i].groups);
        if (!l.rc || strncmp(l.err, refused[i].says, strlen(refused[i].says)) != 0)
            fail_msg("%s: found \"%s\", expected \"%s\"", refused[i].name, l.rc ? l.err : "a trace",
                     refused[i].says);
        look_end(&l);
    }
}

static const struct {
    const char *name, *text, *groups;
    enum finding_kind kind;
    uint64_t n;
    const char *says;
} wrong[] = {
    {"a send alone", ONE("send 8b to 1\n"), NULL, FINDING_NO_RECEIVER, 1,
     "x.goal:3: found a send of rank 0 to rank 1, tag 0, without the other end, expected both"},
    {"a receive alone", ONE("recv 8b from -1 tag 3\n"), NULL, FINDING_NO_SENDER, 1,
     "x.goal:3: found a receive of rank 0 from rank any, tag 3, without the other end"},
    {"another tag", HEAD "rank 0 {\nsend 8b to 1 tag 1\n}\nrank 1 {\nrecv 8b from 0 tag 2\n}\n",
     NULL, FINDING_NO_SENDER, 1, "x.goal:6: found a receive of rank 1 from rank 0, tag 2"},
    {"a rank that is not there", ONE("send 8b to 2\n"), NULL, FINDING_PEER, 1,
     "x.goal:3: found rank 2, expected one below 2"},
    {"two sizes", HEAD "rank 0 {\nsend 8b to 1\n}\nrank 1 {\nrecv 9b from 0\n}\n", NULL,
     FINDING_SIZE, 1,
     "x.goal:6: found a receive of 9 B by rank 1, expected the 8 B that rank 0 sends"},
    {"no label", ONE("a: calc 1\na requires b\n"), NULL, FINDING_DEPENDENCY, 1,
     "x.goal:4: found the label \"b\", expected one that the rank has before"},
    {"a label of another rank",
     HEAD "rank 0 {\na: calc 1\n}\nrank 1 {\nb: calc 1\nb requires a\n}\n", NULL,
     FINDING_DEPENDENCY, 1, "x.goal:7: found the label \"a\""},
    {"itself", ONE("a: calc 1\na requires a\n"), NULL, FINDING_CYCLE, 1,
     "x.goal:3: found an operation of rank 0 that waits for itself, expected no cycle"},
    {"a cycle by a start",
     ONE("a: calc 1\nb: calc 2\nc: calc 3\na requires c\nb irequires a\nc requires b\n"), NULL,
     FINDING_NEVER, 3, "x.goal:3: found an operation of rank 0 that never starts"},
    {"a cycle behind what waits for a message",
     ONE("r: recv 1b from 1\na: calc 1\nb: calc 2\na requires r\na requires b\nb requires a\n"),
     NULL, FINDING_CYCLE, 1, "x.goal:"},
    {"two ranks that wait for each other",
     HEAD "rank 0 {\nr: recv 1b from 1\ns: send 1b to 1\ns requires r\n}\n"
          "rank 1 {\nr: recv 1b from 0\ns: send 1b to 0\ns requires r\n}\n",
     NULL, FINDING_NEVER, 2, "x.goal:4: found an operation of rank 0 that never starts"},
    {"collectives in two orders",
     HEAD "rank 0 {\na: coll allreduce 8b 0 1 -1\nb: coll allreduce 8b 0 2 -1\nb requires a\n}\n"
          "rank 1 {\na: coll allreduce 8b 0 1 -1\nb: coll allreduce 8b 0 2 -1\na requires b\n}\n",
     "0 1\n", FINDING_NEVER, 2, "x.goal:4: found an operation of rank 0 that never starts"},
    {"no group", ONE("coll bcast 8b 0 0 1\n"), NULL, FINDING_NO_GROUP, 1,
     "x.goal:3: found a collective on group 0, expected one that is defined"},
    {"not a member", HEAD "rank 0 {\n}\nrank 1 {\ncoll allgather 8b 0 5 -1\n}\n", "0\n",
     FINDING_NO_MEMBER, 1, "x.goal:5: found rank 1 in a collective of group 0, expected a member"},
    {"a member lacks it", ONE("coll allgather 8b 0 5 -1\n"), "0 1\n", FINDING_LACKING, 1,
     "x.goal:3: found all_gather of 8 B by 1 ranks, expected the 2 of its group: rank 1 lacks it"},
    {"another size",
     HEAD "rank 0 {\ncoll allgather 8b 0 5 -1\n}\nrank 1 {\ncoll allgather 9b 0 5 -1\n}\n", "0 1\n",
     FINDING_DISAGREE, 1,
     "x.goal:6: found all_gather of 9 B, expected the all_gather of 8 B of rank 0"},
    {"another root", HEAD "rank 0 {\ncoll reduce 8b 0 5 0\n}\nrank 1 {\ncoll reduce 8b 0 5 1\n}\n",
     "0 1\n", FINDING_DISAGREE, 1,
     "x.goal:6: found reduce of 8 B, root 1, expected the reduce of 8 B, root 0"},
    {"twice",
     HEAD
     "rank 0 {\ncoll bcast 8b 0 5 0\ncoll bcast 8b 0 5 0\n}\nrank 1 {\ncoll bcast 8b 0 5 0\n}\n",
     "0 1\n", FINDING_TWICE, 1, "x.goal:4: found rank 0 in collective 5 again, expected it once"},
};

static void what_is_wrong_is_counted_and_named(void **state)
{
    struct looked l;

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        look_bytes(&l, "x.goal", wrong[i].text, strlen(wrong[i].text), wrong[i].groups);
        if (l.rc || l.g.found.n[wrong[i].kind] != wrong[i].n ||
            strncmp(look_says(&l, (int)wrong[i].kind), wrong[i].says, strlen(wrong[i].says)) != 0)
            fail_msg("%s: found %llu: \"%s\", expected %llu: \"%s\"", wrong[i].name,
                     (unsigned long long)l.g.found.n[wrong[i].kind],
                     look_says(&l, (int)wrong[i].kind), (unsigned long long)wrong[i].n,
                     wrong[i].says);
        look_end(&l);
    }
}

static const char grammar[] =
    "// before\r\n/* over\n two lines */ num_ranks 3\nrank 0 {\r\n"
    "a1: calc 1000 \na2: send 4096b to 1 tag 7\nsend 4096 b to 1 tag 7 cpu 1 nic 2\n"
    "a1: recv 8b from -1 tag -1 cpu 255\n/* c */ a2 requires a1\n// d\na2 irequires a1\n}\n"
    "rank 1 {\nrecv 4096b from 0 tag 7\nrecv 4096b from -1 tag 7\nsend 8b to 0 tag 4294967294\n"
    "send 0b to 9999999\n}\nrank 2\n{\n}\n";

static void the_grammar_is_read(void **state)
{
    struct looked l;

    (void)state;
    look_bytes(&l, "x.goal", grammar, strlen(grammar), NULL);
    assert_string_equal(look_says(&l, -1), "");
    assert_int_equal(l.g.n_ranks, 3);
    assert_int_equal(l.d.rank[0].n[APP_SEND], 2);
    assert_int_equal(l.d.rank[0].bytes[APP_SEND], 8192);
    assert_int_equal(l.d.rank[0].deps, 1);
    assert_int_equal(l.d.rank[0].start_deps, 1);
    assert_int_equal(l.d.rank[1].marks, 1);
    assert_int_equal(l.d.rank[1].any, 1);
    assert_int_equal(l.d.way.met, 3);
    assert_int_equal(l.g.rank[0].op[1].line, 6);
    assert_int_equal(l.g.rank[0].dep[0], 0); /* of two labels the first counts */
    assert_int_equal(l.g.rank[0].op[2].nic, 2);
    assert_int_equal(l.g.rank[0].op[3].stream, 255);
    assert_int_equal(l.g.rank[0].op[3].peer, APP_ANY);
    look_end(&l);
}

/* What starts and never ends is on no path. */
static void a_trace_may_have_no_path(void **state)
{
    static const char text[] = HEAD "rank 0 {\n}\nrank 1 {\nrecv 8b from 0\n}\n";
    struct json_t *json;
    struct looked l;

    (void)state;
    look_bytes(&l, "x.goal", text, strlen(text), NULL);
    assert_int_equal(l.d.way.started, 1);
    assert_int_equal(l.d.way.ended, 0);
    assert_int_equal(l.d.way.ops, 0);
    json = doctor_json(&l.d);
    assert_null(json_object_get(json_object_get(json, "critical_path"), "place"));
    json_decref(json);
    look_end(&l);
}

/* Rank 1's computation of 50 begins when the slower of both ranks has reached the collective. */
static void the_critical_path_crosses_ranks(void **state)
{
    static const char text[] =
        "num_ranks 3\n"
        "rank 0 {\na: calc 10\nb: coll allreduce 8b 0 1 -1\nb requires a\n}\n"
        "rank 1 {\na: calc 30\nb: coll allreduce 8b 0 1 -1\nc: calc 50\n"
        "d: send 4b to 2\nb requires a\nc requires b\nd requires c\n}\n"
        "rank 2 {\na: recv 4b from 1\nb: calc 5\nb requires a\nc: calc 84\n}\n";
    struct looked l;

    (void)state;
    look_bytes(&l, "x.goal", text, strlen(text), "0 1\n");
    assert_string_equal(look_says(&l, -1), "");
    assert_int_equal(l.d.way.ns, 85);
    assert_int_equal(l.d.way.ops, 6);
    assert_int_equal(l.d.way.rank, 2);
    assert_int_equal(l.d.all.busy_ns, 89);
    look_end(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_are_refused_by_line),
        cmocka_unit_test(what_is_wrong_is_counted_and_named),
        cmocka_unit_test(the_grammar_is_read),
        cmocka_unit_test(a_trace_may_have_no_path),
        cmocka_unit_test(the_critical_path_crosses_ranks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
