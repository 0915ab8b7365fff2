/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams of a job that were captured while it began, sent again, and others made of what they
 * tell: the group's id and key, the ranks' queue pairs.
 *
 *     replay FILE SECONDS
 *
 * Each captured datagram is sent as it was and from the own address. For each JOIN in the capture,
 * its aggregation node and its member hear from each other that the group is over, and the member
 * from another rank that the job has failed, in the sender's name and in the own.
 */
#include "tests/hostile/raw.h"

#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FRAMES 512u
#define GAP_US 1500 /* below the limit of frames in a second */
#define PHASE  0x54524250u
#define FAILED 3
#define TEXT   "rank 1 (h1): forged"

struct shot {
    uint32_t len;
    uint8_t bytes[640];
};
static struct shot shot[FRAMES];
static unsigned n_shots;

/* A phase between ranks, before and since it is sealed. */
struct phase_open {
    rte_be32_t magic;
    uint8_t version, phase, seen, answer;
    rte_be32_t group, rank;
    char text[192];
} __attribute__((packed));
struct phase_sealed {
    rte_be32_t magic, seq, from;
    rte_be64_t mac;
    uint8_t version, phase, seen, answer;
    char text[184];
} __attribute__((packed));

static void load(const char *file)
{
    char err[PCAP_ERRBUF_SIZE];
    struct pcap_pkthdr *h;
    const u_char *p;
    pcap_t *f = pcap_open_offline(file, err);

    if (!f)
        raw_die("%s", err);
    while (n_shots < FRAMES && pcap_next_ex(f, &h, &p) == 1)
        if (h->caplen > 62 && h->caplen <= sizeof(shot->bytes) &&
            (p[42] & ROCE_TRANSPORT_MASK) == ROCE_UD) {
            memcpy(shot[n_shots].bytes, p, h->caplen);
            shot[n_shots++].len = h->caplen;
        }
    pcap_close(f);
}

static void shoot(struct raw *r, struct rte_mbuf *m)
{
    raw_offer(r, m);
    raw_drain(r);
    usleep(GAP_US);
}

/* The same datagram, from the own port and queue pair. */
static struct rte_mbuf *as_own(struct raw *r, const struct roce_pkt *k)
{
    return raw_ud(r, 0, k->dst_ip, 0, k->dqpn, k->qkey, k->payload, k->len);
}

/* A message that ends something, in both names. */
static void end_it(struct raw *r, uint32_t src, uint32_t sqpn, uint32_t dst, uint32_t dqpn,
                   enum agg_type type, const struct agg_ctl *join)
{
    struct agg_ctl c = *join;

    c.status = RTE_BE16(AGG_E_MEMBER_LOST);
    snprintf(c.text, sizeof(c.text), "forged");
    shoot(r, raw_agg(r, src, dst, sqpn, dqpn, type, &c));
    shoot(r, raw_agg(r, 0, dst, 0, dqpn, type, &c));
}

static void end_job(struct raw *r, const struct roce_pkt *k, const struct agg_ctl *join)
{
    struct phase_open old = {.magic = RTE_BE32(PHASE),
                             .version = 1,
                             .phase = FAILED,
                             .group = join->group,
                             .rank = RTE_BE32(1),
                             .text = TEXT};
    struct phase_sealed new = {.magic = RTE_BE32(PHASE),
                               .seq = RTE_BE32(1000),
                               .from = RTE_BE32(1),
                               .mac = join->key,
                               .version = 2,
                               .phase = FAILED,
                               .text = TEXT};

    shoot(r, raw_ud(r, 0, k->src_ip, 0, k->sqpn, AGG_QKEY, &old, sizeof(old)));
    shoot(r, raw_ud(r, 0, k->src_ip, 0, k->sqpn, AGG_QKEY, &new, sizeof(new)));
}

static void use_join(struct raw *r, const struct roce_pkt *k, const struct agg_ctl *join)
{
    static const enum agg_type to_member[] = {AGG_ABORT, AGG_PROBE_REPLY, AGG_LEAVE_REPLY,
                                              AGG_WINDOW};
    static const enum agg_type to_an[] = {AGG_LEAVE, AGG_ABORT, AGG_PROBE, AGG_ABORT_ACK};

    for (unsigned i = 0; i < sizeof(to_an) / sizeof(to_an[0]); i++)
        end_it(r, k->src_ip, k->sqpn, k->dst_ip, AGG_QPN, to_an[i], join);
    for (unsigned i = 0; i < sizeof(to_member) / sizeof(to_member[0]); i++)
        end_it(r, k->dst_ip, AGG_QPN, k->src_ip, k->sqpn, to_member[i], join);
    end_job(r, k, join);
}

static void use(struct raw *r, const struct shot *s)
{
    struct rte_mbuf *m = raw_bytes(r, s->bytes, s->len);
    struct agg_ctl c;
    struct roce_pkt k;

    if (roce_parse(m, &k) == ROCE_OK) {
        shoot(r, as_own(r, &k));
        if (k.len == sizeof(c)) {
            memcpy(&c, k.payload, sizeof(c));
            if (c.magic == RTE_BE32(AGG_MAGIC) && c.type == AGG_JOIN)
                use_join(r, &k, &c);
        }
    }
    shoot(r, m);
}

int main(int argc, char **argv)
{
    struct raw r;
    int64_t end;

    if (argc != 3)
        raw_die("usage: replay FILE SECONDS");
    load(argv[1]);
    raw_open(&r, NULL, 0, -1);
    end = clock_mono_ns() + atoi(argv[2]) * 1000000000LL;
    do
        for (unsigned i = 0; i < n_shots; i++)
            use(&r, &shot[i]);
    while (n_shots && clock_mono_ns() < end);
    raw_flush(&r, 1000);
    printf("sent %llu, of %u captured\n", (unsigned long long)r.sent, n_shots);
    raw_close(&r);
    return n_shots ? 0 : 1;
}
