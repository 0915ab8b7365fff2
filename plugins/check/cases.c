/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugins/check/coll_cases.h"
#include "plugins/check/net_cases.h"

#define STRICT CASE_STRICT
#define LAST   CASE_LAST

static const struct plugin_case net[] = {
    {"init", "it loads, has all functions, and devices", NULL, 0, 0},
    {"properties", "devices' properties are set, sound, and those of other tables", case_properties,
     0, 0},
    {"contexts", "a communicator's context ends alone", case_contexts, 0, 11},
    {"would-block", "accept() and connect() return while the other end is not there",
     net_would_block, 0, 0},
    {"several", "six connections at once, in both directions", net_several, 0, 0},
    {"one-listen", "three connections by one listening communicator", net_one_listen, 0, 0},
    {"reopen", "connections one after the other", net_reopen, 0, 0},
    {"register", "memory that is registered several times", net_register, 0, 0},
    {"sizes", "messages of 0 bytes to 1 MiB", net_sizes, 0, 0},
    {"larger-receive", "receives that are larger than what is sent", net_larger, 0, 0},
    {"windows", "at odd places, and at both ends of registered memory", net_windows, 0, 0},
    {"early-receive", "a receive ends only when somebody has sent", net_early_receive, 0, 0},
    {"early-send", "isend() returns while there is no receive", net_early_send, 0, 0},
    {"in-flight", "32 requests at once", net_in_flight, 0, 0},
    {"test-order", "32 requests, tested in other orders", net_orders, 0, 0},
    {"no-sizes", "test() without a place for sizes", net_no_sizes, 0, 0},
    {"optional", "receives whose end nobody needs", net_optional, 0, 9},
    {"flush", "iflush() ends, and leaves the data", net_flush, 0, 0},
    {"both-ways", "1 MiB in both directions at once", net_both_ways, 0, 0},
    {"groups", "receives of a group, sends in another order", net_groups, 0, 0},
    {"groups-larger", "the same, larger than what is sent", net_groups_larger, 0, 0},
    {"groups-in-flight", "eight groups at once with the same tags", net_groups_in_flight, 0, 0},
    {"drawn", "100 groups of drawn sizes and tags", net_drawn, 0, 0},
    {"close-requests", "a communicator is closed with receives that wait", net_close_requests, 0,
     0},
    {"close-early", "a listening communicator is closed while others connect", net_close_early, 0,
     0},
    {"null", "NULL in place of handles", net_null, STRICT, 0},
    {"stale", "handles of what has ended", net_stale, STRICT, 0},
    {"wrong", "handles of something else", net_wrong, STRICT, 0},
    {"bad-arguments", "devices, sizes and memory that are none", net_bad_arguments, STRICT, 0},
    {"dmabuf", "regMrDmaBuf() without a DMA buffer", net_dmabuf, STRICT, 0},
    {"too-large", "a message that is larger than its receive", net_too_large, STRICT, 0},
    {"killed-sender", "a receive whose sender is killed", net_killed_sender, LAST, 0},
    {"killed-receiver", "sends whose receiver is killed", net_killed_receiver, LAST, 0},
    {"killed-in-flight", "a sender is killed while it sends", net_killed_in_flight, LAST, 0},
    {"end", "ranks end with status 0", NULL, 0, 0},
};

static const struct plugin_case coll[] = {
    {"init", "it loads, has all functions, and devices", NULL, 0, 0},
    {"properties", "devices' properties are set, sound, and those of other tables", case_properties,
     0, 0},
    {"contexts", "a communicator's context ends alone", case_contexts, 0, 11},
    {"support", "types and reductions that are supported", coll_support, 0, 0},
    {"types", "all-reduce of all of them", coll_types, 0, 0},
    {"sizes", "all-reduce of 1 to 65,536 elements, at odd places", coll_sizes, 0, 0},
    {"in-place", "all-reduce onto what is sent", coll_in_place, 0, 0},
    {"in-flight", "eight all-reduces at once, tested in two orders", coll_in_flight, 0, 0},
    {"flush", "iflush() ends, and leaves the data", coll_flush, 0, 0},
    {"gather", "all-gather", coll_gather, 0, 0},
    {"gather-windows", "all-gather by windows, as NCCL's proxy cuts it", coll_gather_windows, 0, 0},
    {"scatter", "reduce-scatter", coll_scatter, 0, 0},
    {"scatter-windows", "reduce-scatter by windows", coll_scatter_windows, 0, 0},
    {"several", "three communicators at once", coll_several, 0, 0},
    {"reopen", "communicators one after the other", coll_reopen, 0, 0},
    {"close-requests", "a communicator is closed with an operation in flight", coll_close_requests,
     0, 0},
    {"null", "NULL in place of handles", coll_null, STRICT, 0},
    {"stale", "handles of what has ended", coll_stale, STRICT, 0},
    {"bad-arguments", "ranks, types and windows that are none", coll_bad_arguments, STRICT, 0},
    {"killed", "an all-reduce, of which a rank is killed", coll_killed, LAST, 0},
    {"end", "ranks end with status 0", NULL, 0, 0},
};
_Static_assert(sizeof(net) / sizeof(net[0]) <= BOARD_ROWS, "as the board");

const struct plugin_case *cases_of(bool of_coll, unsigned *n)
{
    *n = of_coll ? sizeof(coll) / sizeof(coll[0]) : sizeof(net) / sizeof(net[0]);
    return of_coll ? coll : net;
}
