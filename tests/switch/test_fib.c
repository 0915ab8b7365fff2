/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lookup, remembered assignments included, gives the port of the fabric's routes for that source
 * and destination, whatever was looked up before.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>

#include "base/random.h"
#include "fabric/fabric.h"
#include "roce/wire.h"
#include "switch/fib.h"

#define LOOKUPS 60000u

/* More destinations than a switch remembers assignments for. */
static struct fabric *fabric_of(const char *ecmp)
{
    char conf[512];
    struct fabric *f;

    snprintf(conf, sizeof(conf),
             "ecmp = \"%s\"; leaf_spine = { leaves = 40; spines = 6; hosts_per_leaf = 32;\n"
             "host_link = { rate = \"400Gb/s\"; latency = \"300ns\"; };\n"
             "spine_link = { rate = \"400Gb/s\"; latency = \"300ns\"; cables = 2; }; };\n",
             ecmp);
    f = fabric_load_string(conf, "test.conf", NULL);
    assert_non_null(f);
    return f;
}

static uint32_t ip_of(const struct fabric *f, uint64_t host)
{
    return f->nodes[f->hosts[host % f->n_hosts]].ip_of_port[0];
}

static void look_up(struct fib *fib, const struct fabric *f, uint16_t node, uint32_t src,
                    uint32_t dst, uint16_t udp_src)
{
    struct packet_class k = {.src_ip = src, .dst_ip = dst, .udp_src = udp_src};
    uint8_t mac[6];
    bool any = false;
    uint16_t got, only,
        want = fabric_next_port(f, node, (uint16_t)fabric_dest_of_ip(f, dst), packet_flow_hash(&k),
                                src);

    roce_mac_of_ip(dst, mac);
    got = fib_lookup(fib, mac, &k, &any);
    only = fib_only_port(fib, mac);
    if (got != want)
        fail_msg("%08x to %08x: port %u, the routes say %u", src, dst, got, want);
    if (any != (only != FIB_NO_PORT) || (any && only != got))
        fail_msg("%08x to %08x: any %d, only %u, port %u", src, dst, any, only, got);
}

static void lookups_are_what_the_routes_say(void **state)
{
    static const char *const ecmp[] = {"balanced", "hash"};
    static const char *const at[] = {"leaf0", "leaf7", "spine3"};

    (void)state;
    for (unsigned e = 0; e < 2; e++) {
        struct fabric *f = fabric_of(ecmp[e]);
        uint64_t rng = 3;

        for (unsigned n = 0; n < 3; n++) {
            uint16_t node = fabric_node_index(f, fabric_node(f, at[n]));
            struct fib *fib;

            assert_int_equal(fib_create(&fib, f, node), 0);
            for (unsigned i = 0; i < LOOKUPS; i++) {
                /* A few sources to all destinations: remembered assignments are looked up again and
                 * again. */
                uint32_t src = ip_of(f, 224 + random_next(&rng) % 4);
                uint32_t dst = ip_of(f, random_next(&rng));

                if (src != dst)
                    look_up(fib, f, node, src, dst, (uint16_t)(0xc000 | i % 5));
            }
            fib_destroy(fib);
        }
        fabric_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lookups_are_what_the_routes_say),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
