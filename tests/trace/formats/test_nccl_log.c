/* SPDX-License-Identifier: BSD-3-Clause */
/* NCCL's logs: processes, communicators and operations; mistakes are named by line. */
#include "tests/trace/trace_test.h"

#define AT(pid) "2: host:" pid ":7 [0] NCCL INFO "
#define WORLD(r)                                                                                   \
    "ncclCommInitRank comm 0xa0 rank " r                                                           \
    " nranks 2 cudaDev 0 busId 1b commId 0x77 - Init COMPLETE\n"
#define SPLIT                                                                                      \
    "ncclCommSplit comm 0xb0 rank 0 nranks 1 cudaDev 0 parent 0xa0 childCount 1 color 3 key 0 - "  \
    "Init COMPLETE\n"
#define OP(op, count, n, root, comm)                                                               \
    op ": opCount " count " sendbuff (nil) recvbuff 0x7 count " n " datatype 7 op 0 root " root    \
       " comm " comm " [nranks=2] stream 0x5\n"
#define WORLDS AT("1") WORLD("0") AT("2") WORLD("1")

static void look(struct looked *l, const char *text)
{
    look_bytes(l, "x.log", text, strlen(text), NULL);
}

static void operations_follow_their_stream(void **state)
{
    struct looked l;

    (void)state;
    look(&l,
         "mpirun: hello\n" WORLDS AT("1") SPLIT AT("1") OP("AllReduce", "0", "16", "0", "0xa0")
             AT("2") OP("AllReduce", "0", "16", "0", "0xa0") AT("1")
                 OP("Send", "1", "4", "1", "0xa0") AT("1") OP("Recv", "1", "2", "1", "0xa0") AT("2")
                     OP("Send", "1", "2", "0", "0xa0") AT("2") OP("Recv", "1", "4", "0", "0xa0")
                         AT("1") OP("Broadcast", "0", "8", "0", "0xb0")
                             AT("1") "AllReduce: 16777216 Bytes -> Algo RING proto SIMPLE "
                                     "channel{Lo..Hi}={0..15}\n");
    assert_string_equal(look_says(&l, -1), "");
    assert_int_equal(l.g.n_ranks, 2);
    assert_int_equal(l.d.all.coll_bytes[APP_ALL_REDUCE], 128);
    assert_int_equal(l.d.all.bytes[APP_SEND], 24);
    assert_int_equal(l.d.way.met, 2);
    assert_int_equal(l.d.rank[0].n[APP_WAIT], 1); /* behind a group of two */
    assert_int_equal(l.d.rank[0].deps, 2 + 2 + 1);
    assert_int_equal(l.g.group[1].n, 1);
    look_end(&l);
}

static const struct {
    const char *text, *says;
} broken[] = {
    {AT("1") OP("AllReduce", "0", "16", "0", "0xa0"),
     "x.log:1: found \"0xa0\", expected a communicator whose"},
    {AT("1") "ncclCommInitRank comm 0xa0 rank 2 nranks 2 commId 0x7 - Init COMPLETE\n",
     "x.log:1: found \"2\", expected rank and a number"},
    {AT("1") "ncclCommInitRank comm 0xa0 rank 0 nranks 9999999 commId 0x7 - Init COMPLETE\n",
     "x.log:1: found \"9999999\", expected nranks and a number"},
    {AT("1") "ncclCommInitRank comm 0xa0 rank 0 nranks 2 - Init COMPLETE\n",
     "x.log:1: found the end of the line, expected parent and a number"},
    {AT("1") SPLIT, "x.log:1: found \"0xa0\", expected a communicator of this process"},
    {AT("1") WORLD("0") AT("2") WORLD("0"),
     "x.log: line 2: found rank 0 of communicator id 0x77 again"},
    {AT("1") WORLD("0") AT("2") "x comm 0xa0 rank 1 nranks 3 commId 0x77 - Init COMPLETE\n",
     "x.log: line 2: found 3 ranks of id 0x77, expected 2"},
    {WORLDS AT("1") OP("AllReduce", "0", "x", "0", "0xa0"),
     "x.log:3: found \"x\", expected count and a number"},
    {WORLDS AT("1") OP("AllReduce", "zz", "1", "0", "0xa0"),
     "x.log:3: found \"zz\", expected opCount and"},
    {WORLDS AT("1") OP("Send", "0", "1", "2", "0xa0"),
     "x.log:3: found \"2\", expected a rank of the"},
    {WORLDS AT("1") "Send: opCount 0 count 1 datatype 12 root 0 comm 0xa0 stream 0x1\n",
     "x.log:3: found \"12\", expected datatype and a number"},
    {WORLDS AT("1") "Send: opCount 0 count 1 datatype 1 root 0 comm 0xa0\n",
     "x.log:3: found the end of the line, expected stream and a number"},
    {WORLDS AT("1") OP("AllReduce", "0", "1", "0", "0xa0"),
     "x.log:3: found all_reduce of 4 B by 1 ranks, expected the 2 of its group: rank 1 lacks it"},
    {WORLDS AT("1") OP("Send", "0", "1", "1", "0xa0"), "x.log:3: found a send of rank 0 to rank 1"},
    {WORLDS AT("1") OP("Reduce", "0", "1", "0", "0xa0") AT("2") OP("Reduce", "0", "1", "1", "0xa0"),
     "x.log:4: found reduce of 4 B, root 1, expected the reduce of 4 B, root 0 of rank 0"},
};

static void broken_logs_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        struct looked l;

        look(&l, broken[i].text);
        if (strncmp(look_says(&l, -1), broken[i].says, strlen(broken[i].says)) != 0)
            fail_msg("%s: found \"%s\", expected \"%s\"", broken[i].text, look_says(&l, -1),
                     broken[i].says);
        look_end(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_follow_their_stream),
        cmocka_unit_test(broken_logs_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
