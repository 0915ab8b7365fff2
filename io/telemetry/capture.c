/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/telemetry/capture.h"

#include "system/own_path.h"

#include <errno.h>
#include <fcntl.h>
#include <pcap/pcap.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SNAP        65535
#define OWNER_CHECK 4096 /* frames between checks that the owner is alive */

struct capture {
    struct capture *next;
    pcap_t *pcap;
    pcap_dumper_t *out;
    char *file;
    unsigned link;
    pid_t owner;
    int err;               /* errno of the first frame that could not be written */
    uint64_t seen, frames; /* on the link; written to the file */
    bool filtered;
    struct bpf_program filter;
    uint8_t buf[SNAP];
};

static bool abandoned(const struct capture *c)
{
    return kill(c->owner, 0) && errno == ESRCH;
}

/* Ends a capture. Returns 0 or the errno of a failed write. Leaves the tap installed, because the tap
 * may be the caller. */
static int capture_end_in(struct capture **cp)
{
    struct capture *c = *cp;
    int err = c->err;

    *cp = c->next;
    if (c->out && pcap_dump_flush(c->out) && !err)
        err = errno;
    if (c->out)
        pcap_dump_close(c->out);
    if (c->filtered)
        pcap_freecode(&c->filter);
    if (c->pcap)
        pcap_close(c->pcap);
    free(c->file);
    free(c);
    return err;
}

static void write_frame(struct capture *c, struct rte_mbuf *m, int64_t now_ps)
{
    struct pcap_pkthdr h = {0};
    const void *data;

    h.caplen = RTE_MIN(m->pkt_len, (uint32_t)SNAP);
    h.len = m->pkt_len;
    h.ts.tv_sec = now_ps / PS_PER_S;
    h.ts.tv_usec = now_ps % PS_PER_S / PS_PER_NS; /* a nanosecond file has ns here */
    data = rte_pktmbuf_read(m, 0, h.caplen, c->buf);
    if (data && c->filtered && !pcap_offline_filter(&c->filter, &h, data))
        return;
    if (data && !c->err)
        pcap_dump((u_char *)c->out, &h, data);
    if (ferror(pcap_dump_file(c->out)) && !c->err)
        c->err = errno;
    c->frames++;
}

static void capture_frame(void *ctx, unsigned dirlink, struct rte_mbuf *m, int64_t now_ps)
{
    struct captures *cs = ctx;

    for (struct capture **cp = &cs->first, *c; (c = *cp);) {
        if (c->link == dirlink / 2) {
            write_frame(c, m, now_ps);
            if (++c->seen % OWNER_CHECK == 0 && abandoned(c)) {
                capture_end_in(cp);
                continue;
            }
        }
        cp = &c->next;
    }
}

static void tap(struct captures *cs)
{
    loop_tap(cs->loop, cs->first ? capture_frame : NULL, cs);
}

static struct capture **captures_find(struct captures *cs, const char *file)
{
    struct capture **cp = &cs->first;

    while (*cp && strcmp((*cp)->file, file))
        cp = &(*cp)->next;
    return cp;
}

static int captures_refuse(struct captures *cs, int err, const char *text, char *why, size_t size)
{
    snprintf(why, size, "%s", text);
    if (cs->first && !cs->first->out)
        capture_end_in(&cs->first);
    return -err;
}

/* Opens the file without blocking this process, as a pipe could. */
static int open_file(struct capture *c)
{
    int fd = own_output_open(c->file, O_NONBLOCK);
    struct stat st;
    FILE *f;

    if (fd < 0)
        return fd == -ENXIO ? -EPERM : fd;
    f = fstat(fd, &st) || (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode)) ? NULL : fdopen(fd, "w");
    c->out = f ? pcap_dump_fopen(c->pcap, f) : NULL;
    if (c->out)
        return 0;
    if (f)
        fclose(f);
    else
        close(fd);
    return f ? -EIO : -EPERM;
}

/* 0, or -EINVAL with libpcap's message in why. */
static int set_filter(struct capture *c, const char *filter, char *why, size_t size)
{
    if (!filter || !*filter)
        return 0;
    if (pcap_compile(c->pcap, &c->filter, filter, 1, PCAP_NETMASK_UNKNOWN)) {
        snprintf(why, size, "filter: %s", pcap_geterr(c->pcap));
        return -EINVAL;
    }
    c->filtered = true;
    return 0;
}

int capture_start(struct captures *cs, const struct capture_cfg *cfg, char *why, size_t size)
{
    const char *file = cfg->file;
    struct capture *c;
    unsigned n = 0;
    int rc;

    for (struct capture **cp = &cs->first; *cp;)
        if (abandoned(*cp))
            capture_end_in(cp);
        else
            cp = &(*cp)->next, n++;
    if (*captures_find(cs, file))
        return captures_refuse(cs, EBUSY, "another capture writes into that file", why, size);
    if (n >= CAPTURES_MAX)
        return captures_refuse(cs, ENOSPC, "the most captures that can run are running already",
                               why, size);
    c = calloc(1, sizeof(*c));
    if (!c)
        return captures_refuse(cs, ENOMEM, "no memory", why, size);
    c->next = cs->first;
    cs->first = c;
    c->link = cfg->link;
    c->owner = cfg->owner;
    c->file = strdup(file);
    c->pcap = pcap_open_dead_with_tstamp_precision(DLT_EN10MB, SNAP, PCAP_TSTAMP_PRECISION_NANO);
    if (!c->file || !c->pcap)
        return captures_refuse(cs, ENOMEM, "no memory", why, size);
    if (set_filter(c, cfg->filter, why, size)) {
        capture_end_in(&cs->first);
        return -EINVAL;
    }
    rc = open_file(c);
    if (rc)
        return captures_refuse(cs, -rc,
                               rc == -EPERM
                                   ? "found another user's link or file, or no plain file, there"
                                   : strerror(-rc),
                               why, size);
    tap(cs);
    return 0;
}

int capture_flush(struct captures *cs, const char *file)
{
    struct capture *c = *captures_find(cs, file);

    if (!c)
        return -ENOENT;
    if (pcap_dump_flush(c->out) && !c->err)
        c->err = errno;
    return -c->err;
}

int capture_stop(struct captures *cs, const char *file, uint64_t *frames, char *why, size_t size)
{
    struct capture **cp = captures_find(cs, file);
    int err;

    if (!*cp)
        return -ENOENT;
    *frames = (*cp)->frames;
    err = capture_end_in(cp);
    tap(cs);
    if (err)
        snprintf(why, size, "%s", strerror(err));
    return -err;
}

void capture_stop_all(struct captures *cs)
{
    while (cs->first)
        capture_end_in(&cs->first);
    if (cs->loop)
        tap(cs);
}
