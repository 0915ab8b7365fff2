#include "switch/rim/capture.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>

#define SNAP 65535

struct capture {
    struct loop *loop;
    pcap_t *pcap;
    pcap_dumper_t *out;
    unsigned link;
    uint64_t frames;
    uint8_t buf[SNAP];
};

static void capture_frame(void *ctx, unsigned dirlink, struct rte_mbuf *m, int64_t now_ps)
{
    struct capture *c = ctx;
    struct pcap_pkthdr h = {0};
    const void *data;

    if (dirlink / 2 != c->link)
        return;
    h.caplen = RTE_MIN(m->pkt_len, (uint32_t)SNAP);
    h.len = m->pkt_len;
    h.ts.tv_sec = now_ps / PS_PER_S;
    h.ts.tv_usec = now_ps % PS_PER_S / PS_PER_NS; /* a nanosecond file: this field holds them */
    data = rte_pktmbuf_read(m, 0, h.caplen, c->buf);
    if (data)
        pcap_dump((u_char *)c->out, &h, data);
    c->frames++;
}

int capture_start(struct capture **cp, struct loop *loop, unsigned link, const char *file,
                  char *why, size_t size)
{
    struct capture *c = calloc(1, sizeof(*c));

    *cp = NULL;
    if (!c)
        return -ENOMEM;
    c->loop = loop;
    c->link = link;
    c->pcap = pcap_open_dead_with_tstamp_precision(DLT_EN10MB, SNAP, PCAP_TSTAMP_PRECISION_NANO);
    c->out = c->pcap ? pcap_dump_open(c->pcap, file) : NULL;
    if (!c->out) {
        snprintf(why, size, "%s", c->pcap ? pcap_geterr(c->pcap) : "no memory");
        if (c->pcap)
            pcap_close(c->pcap);
        free(c);
        return -EIO;
    }
    loop_tap(loop, capture_frame, c);
    *cp = c;
    return 0;
}

uint64_t capture_stop(struct capture *c)
{
    uint64_t n = c ? c->frames : 0;

    if (!c)
        return 0;
    loop_tap(c->loop, NULL, NULL);
    pcap_dump_close(c->out);
    pcap_close(c->pcap);
    free(c);
    return n;
}
