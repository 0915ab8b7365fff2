/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arbitrary commands to the telemetry of a switch process: /trib/link and its words change links, and
 * whatever they change, the net goes on, and `clear,up` brings it back. Captures write to /dev/null.
 *
 * Input: lines "COMMAND,PARAMETERS", as they come through the socket.
 */
#include "io/loop_impl.h"
#include "machine/page_server.h"
#include "io/telemetry/telemetry.h"
#include "tests/support/eal.h"
#include "tests/fuzz/fuzz.h"

#include <rte_mempool.h>
#include <rte_telemetry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
#define MAX_EVENTS 100000
#define QUESTION   1024u /* bytes that DPDK reads */

static const char conf[] =
    "name = \"fuzz\"; slots_per_host = 1; nodes = ( { name = (\"h0\", \"h1\"); kind = \"host\"; },"
    " { name = (\"s0\", \"s1\"); kind = \"switch\"; } );"
    "reduce = { groups = 2; slots = 32; window = 8; };"
    "link_defaults = { rate = \"100Gb/s\"; latency = \"300ns\"; };"
    "links = ( { a = \"h0\"; b = \"s0\"; }, { a = \"h1\"; b = \"s1\"; },"
    " { a = \"s0\"; b = \"s1\"; cables = 2; } );";

static char dir[] = "/tmp/fuzz_telemetry.XXXXXX";
static struct rundir rd;
static struct page_server *pages;
static struct fabric *fab;
static struct loop *loop;

static void answer(const char *cmd, const char *params)
{
    struct rte_tel_data *d = rte_tel_data_alloc();

    check(d != NULL, "rte_tel_data_alloc");
    telemetry_answer(loop, cmd, params, d);
    rte_tel_data_free(d);
}

static void leave(void)
{
    loop_destroy(loop);
    page_server_stop(pages);
    rundir_remove(&rd);
    rundir_close(&rd);
    rmdir(dir);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    struct loop_cfg cfg = {.rd = &rd, .seed = 1};

    (void)argc, (void)argv;
    test_eal_init();
    fab = fabric_load_string(conf, "fuzz.conf", NULL);
    check(fab && mkdtemp(dir) && !rundir_open(&rd, dir, fab->name, true), "a run directory");
    check(!page_server_start(
              &pages, &rd.sh,
              &(struct page_server_cfg){.dir = rd.path, .name = "fuzz", .fab = fab, .dilation = 1}),
          "pages");
    cfg.fab = fab;
    cfg.pool = test_pool(2047);
    check(!loop_create(&loop, &cfg), "loop_create");
    atexit(leave);
    return 0;
}

static void run(void)
{
    struct net *net = loop_net(loop);
    int64_t until = net_now(net) + PS_PER_MS;
    unsigned events = 0;

    while (net_next(net) < until) {
        net_advance(net, net_next(net));
        check(++events < MAX_EVENTS, "events without end");
    }
}

/* As DPDK cuts it at the first comma. */
static void line(char *text)
{
    char *params = strchr(text, ','), *file;

    if (params)
        *params++ = 0;
    if (!strcmp(text, "/trib/capture/start") && params) {
        file = strchr(params, ',');
        file = file ? strchr(file + 1, ',') : NULL;
        if (file)
            *file = 0;
        snprintf(params + strlen(params), sizeof("/dev/null,"), ",/dev/null");
    }
    answer(text, params);
}

static void as_before(void)
{
    char params[128];

    telemetry_serve(NULL, NULL); /* ends captures */
    for (unsigned i = 0; i < fab->n_links; i++) {
        snprintf(params, sizeof(params), "%s,clear,up,seed=0", fab->links[i].name);
        answer("/trib/link", params);
        check(net_link_up(loop_net(loop), i), "a link that stays down");
    }
    run();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[QUESTION + 16];

    while (size) {
        const uint8_t *end = memchr(data, '\n', size);
        size_t n = end ? (size_t)(end - data) : size;

        if (n < QUESTION) {
            memcpy(text, data, n);
            text[n] = 0;
            line(text);
            run();
        }
        n += end != NULL;
        data += n, size -= n;
    }
    as_before();
    return 0;
}
