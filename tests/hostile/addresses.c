/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames with the addresses and queue pairs of others.
 *
 *     addresses witness SECONDS           a process that counts what it receives
 *     addresses forge TARGET VICTIM       some of each kind, towards TARGET, in VICTIM's name
 *     addresses inject TARGET VICTIM PSN  an RC message into the connection of VICTIM and TARGET, with
 *                                         the mark of the victim's slot 0 and that of the own
 *     addresses offend TARGET VICTIM      forged frames until nothing is taken, then one of its own
 *                                         until that is
 */
#include "tests/hostile/raw.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EACH      50 /* of a kind: together below the limit at which a slot is shut */
#define OWN       10 /* that are right */
#define GROUP     0xe1020304u
#define QPNS      64u /* of a slot: those that a process gets first */
#define OPEN_MS   30000
#define SHUT_MS   1000
#define FORGED    20000
#define PAYLOAD   "a message that nobody has sent"
#define OWN_QPN   (raw_qpn0(0) | 5)
#define OTHER_QPN 0x7f0001u

static int64_t now_ms(void)
{
    return clock_mono_ns() / 1000000;
}

/* ---- the witness ---- */

static int witness(int seconds)
{
    struct raw r;
    unsigned n[4] = {0};
    int64_t end;

    raw_open(&r, NULL, 0, -1);
    printf("slot %d\n", r.slot);
    fflush(stdout);
    for (end = now_ms() + seconds * 1000; now_ms() < end;) {
        struct rte_mbuf *m = raw_recv(&r, 20);
        struct roce_pkt k;

        if (!m)
            continue;
        if (roce_parse(m, &k) != ROCE_OK)
            n[3]++;
        else if (k.opcode == ROCE_OP_CNP_PACKET)
            n[2]++;
        else
            n[(k.opcode & ROCE_TRANSPORT_MASK) == ROCE_UD ? 0 : 1]++;
        rte_pktmbuf_free(m);
    }
    printf("received: %u datagrams, %u of connections, %u notifications, %u others\n", n[0], n[1],
           n[2], n[3]);
    raw_close(&r);
    return 0;
}

/* ---- the forger ---- */

static struct rte_mbuf *with_mac(struct raw *r, struct rte_mbuf *m, uint32_t ip)
{
    (void)r;
    roce_mac_of_ip(ip, rte_pktmbuf_mtod_offset(m, uint8_t *, 6));
    return m;
}

static void forge(struct raw *r, uint32_t target, uint32_t victim)
{
    uint32_t own = r->ip, sw = r->fab->nodes[r->fab->switches[0]].ip;
    uint8_t mac[6];

    roce_mac_of_ip(victim, mac);
    /* Another's MAC, address, or both; a switch's. */
    raw_send(r, with_mac(r, raw_ud(r, own, target, 0, OWN_QPN, 1, PAYLOAD, 16), victim));
    raw_send(r, with_mac(r, raw_ud(r, victim, target, 0, OWN_QPN, 1, PAYLOAD, 16), own));
    raw_send(r, raw_ud(r, victim, target, 0, OWN_QPN, 1, PAYLOAD, 16));
    raw_send(r, with_mac(r, raw_ud(r, sw, target, AGG_QPN, OWN_QPN, AGG_QKEY, PAYLOAD, 16), own));
    /* Queue pairs of another slot, of a switch, of the NIC. */
    raw_send(r, raw_ud(r, own, target, OTHER_QPN, OWN_QPN, 1, PAYLOAD, 16));
    raw_send(r, raw_ud(r, own, target, AGG_QPN, OWN_QPN, 1, PAYLOAD, 16));
    raw_send(r, raw_ud(r, own, target, AGG_NIC_QPN, OWN_QPN, 1, PAYLOAD, 16));
    /* Connections and notifications in another's name. */
    raw_send(
        r,
        with_mac(r, raw_rc(r, ROCE_OP_RC_SEND_ONLY, victim, target, OWN_QPN, 1, PAYLOAD, 16), own));
    raw_send(r, with_mac(r, raw_ack(r, victim, target, OWN_QPN, 1, NAK_REMOTE_ACCESS, 1), own));
    raw_send(r, with_mac(r, raw_cnp(r, victim, target, OWN_QPN), own));
    raw_send(r, raw_cnp(r, victim, target, OWN_QPN));
    /* Replies that put another's address at the own MAC, or at a third one; memberships. */
    raw_send(r, raw_arp(r, 2, victim, NULL, target));
    raw_send(r, with_mac(r, raw_arp(r, 2, own, mac, target), own));
    raw_send(r, with_mac(r, raw_igmp(r, IGMP_JOIN, GROUP, victim), own));
    raw_send(r, with_mac(r, raw_igmp(r, IGMP_LEAVE, GROUP, victim), own));
}

static int forge_all(const char *target, const char *victim)
{
    struct raw r;

    raw_open(&r, NULL, 0, -1);
    for (unsigned i = 0; i < EACH; i++) {
        forge(&r, raw_ip(&r, target), raw_ip(&r, victim));
        usleep(20000); /* below the limit of frames in a second */
    }
    for (unsigned i = 0; i < OWN; i++)
        raw_send(&r, raw_ud(&r, 0, raw_ip(&r, target), 0, OWN_QPN, 1, PAYLOAD, 16));
    raw_flush(&r, 2000);
    printf("sent %llu from slot %d\n", (unsigned long long)r.sent, r.slot);
    raw_close(&r);
    return 0;
}

/* The queue pair is among the first that a process in slot 0 gets. */
static int inject(const char *target, const char *victim, uint32_t psn)
{
    struct raw r;

    raw_open(&r, NULL, 0, -1);
    for (uint32_t i = 0; i < 2 * QPNS; i++) {
        struct roce_pkt p = {.opcode = ROCE_OP_RC_SEND_ONLY,
                             .src_ip = raw_ip(&r, victim),
                             .dst_ip = raw_ip(&r, target),
                             .dqpn = raw_qpn0(0) + i / 2,
                             .psn = psn,
                             .mark = i % 2 ? 1 : 0,
                             .ack_req = true,
                             .len = 16};

        raw_send(&r, raw_roce(&r, &p, PAYLOAD));
    }
    raw_flush(&r, 2000);
    printf("sent %llu from slot %d\n", (unsigned long long)r.sent, r.slot);
    raw_close(&r);
    return 0;
}

/* ---- the offender ---- */

static int offend(const char *target, const char *victim)
{
    unsigned n = 0;
    struct raw r;
    bool taken;

    raw_open(&r, NULL, 0, -1);
    do {
        int64_t end = now_ms() + SHUT_MS;

        do {
            taken = raw_offer(
                &r, raw_ud(&r, raw_ip(&r, victim), raw_ip(&r, target), 0, OWN_QPN, 1, PAYLOAD, 16));
            if (!taken)
                usleep(1000);
        } while (!taken && now_ms() < end);
        n += taken;
    } while (taken && n < FORGED);
    printf(taken ? "not shut after %u frames\n" : "shut, slot %2$d, %1$u frames\n", n, r.slot);
    fflush(stdout);
    if (taken)
        return 1;
    raw_flush(&r, OPEN_MS);
    raw_send(&r, raw_ud(&r, 0, raw_ip(&r, target), 0, OWN_QPN, 1, PAYLOAD, 16));
    taken = raw_flush(&r, OPEN_MS);
    puts(taken ? "opened" : "still shut");
    raw_close(&r);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "witness"))
        return witness(atoi(argv[2]));
    if (argc == 4 && !strcmp(argv[1], "forge"))
        return forge_all(argv[2], argv[3]);
    if (argc == 5 && !strcmp(argv[1], "inject"))
        return inject(argv[2], argv[3], (uint32_t)strtoul(argv[4], NULL, 0));
    if (argc == 4 && !strcmp(argv[1], "offend"))
        return offend(argv[2], argv[3]);
    raw_die("usage: addresses witness SECONDS | forge TARGET VICTIM | inject TARGET VICTIM PSN | "
            "offend TARGET VICTIM");
}
