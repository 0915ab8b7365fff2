/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/cacheline.h"
#include "roce/engine.h"
#include "roce/guard.h"
#include "roce/icrc.h"

#include <errno.h>
#include <rte_prefetch.h>
#include <string.h>

uint64_t sge_bytes(const struct sge *s, uint32_t n)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < n; i++)
        sum += s[i].len;
    return sum;
}

/* Prefetches the memory of the next packet, up to `left` bytes, while this one is copied: the
 * memory of a message is usually cold. */
static void next_prefetch(const void *p, uint32_t bytes, uint32_t left)
{
    const char *at = (const char *)p + bytes;

    for (uint32_t i = 0; i < RTE_MIN(bytes, left); i += CACHELINE)
        rte_prefetch1(at + i);
}

/* Copies len bytes from off of the list to dst, up to the first byte of an unbacked region;
 * *carried: bytes copied, *crc: their CRC (roce_crc from 0). */
int sge_gather(struct qp *qp, const struct sge *s, uint32_t n, uint32_t off, uint8_t *dst,
               uint32_t len, uint32_t *carried, uint32_t *crc)
{
    bool backed = true;

    *carried = *crc = 0;
    for (uint32_t i = 0; i < n && len; i++) {
        uint32_t piece;
        void *p = NULL;
        int rc;

        if (off >= s[i].len) {
            off -= s[i].len;
            continue;
        }
        piece = RTE_MIN(s[i].len - off, len);
        rc = qp_mem(qp, false, s[i].lkey, s[i].addr + off, piece, 0, &p);
        if (rc)
            return rc;
        backed = backed && p;
        if (backed) {
            if (!qp->r->cfg.guarded)
                *crc = roce_crc_copy(*crc, dst + *carried, p, piece);
            else if (!guard_crc_copy(crc, dst + *carried, p, piece))
                return -EFAULT;
            next_prefetch(p, piece, s[i].len - off - piece);
            *carried += piece;
        }
        len -= piece, off = 0;
    }
    return 0;
}

/* Writes len bytes to off of the list; the last virt of them are counted only. */
int sge_scatter(struct qp *qp, const struct sge *s, uint32_t n, uint32_t off, const uint8_t *src,
                uint32_t len, uint32_t virt)
{
    uint32_t real = len - virt;

    for (uint32_t i = 0; i < n && len; i++) {
        uint32_t piece, copy;
        void *p = NULL;
        int rc;

        if (off >= s[i].len) {
            off -= s[i].len;
            continue;
        }
        piece = RTE_MIN(s[i].len - off, len);
        rc = qp_mem(qp, false, s[i].lkey, s[i].addr + off, piece, ACCESS_LOCAL_WRITE, &p);
        if (rc)
            return rc;
        copy = RTE_MIN(piece, real);
        if (p && copy) {
            if (!copy_to_user(qp, p, src, copy))
                return -EFAULT;
            next_prefetch(p, copy, s[i].len - off - piece);
        }
        if (copy)
            src += copy, real -= copy;
        len -= piece, off = 0;
    }
    return len ? -EMSGSIZE : 0;
}
