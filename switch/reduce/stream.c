/* SPDX-License-Identifier: BSD-3-Clause */
/* Follows the messages of an edge, packet by packet. */
#include "switch/reduce/an_priv.h"

#include <string.h>

enum agg_status stream_packet(struct an_stream *rx, const struct roce_pkt *k, unsigned type,
                              uint32_t mtu, const char **what)
{
    uint8_t place = roce_opinfo[k->opcode].what;
    uint32_t real = k->len - k->virt, want;
    struct agg_hdr h;
    enum agg_status st;

    *what = "packet";
    if (place & ROCE_P_FIRST) {
        if (real < AGG_HDR_BYTES)
            return AGG_E_PROTOCOL;
        memcpy(&h, k->payload, sizeof(h));
        st = agg_hdr_check(&h, type, mtu, what);
        if (st != AGG_OK)
            return st;
        *what = "order of messages";
        if (rx->any && !agg_hdr_follows(&rx->hdr, &h))
            return AGG_E_PROTOCOL;
        rx->hdr = h;
        rx->any = true;
        rx->left = agg_msg_bytes(&h);
        real -= AGG_HDR_BYTES;
    }
    want = RTE_MIN(rx->left, mtu);
    *what = "packet length";
    if (k->len != want || (k->virt && real))
        return AGG_E_PROTOCOL;
    rx->left -= want;
    *what = "message length";
    if (!(place & ROCE_P_LAST) != !!rx->left)
        return AGG_E_PROTOCOL;
    rx->slots += agg_is_empty(&rx->hdr) ? agg_msg_slots(rte_be_to_cpu_32(rx->hdr.msg_len), mtu) : 1;
    return AGG_OK;
}
