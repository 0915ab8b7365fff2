/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes of frames on links. */
#ifndef TRIB_BASE_FRAME_SIZE_H
#define TRIB_BASE_FRAME_SIZE_H

#include <stdint.h>

/* Preamble 8, FCS 4, inter-frame gap 12: what a frame occupies on a link beyond its layer-2 bytes.
 */
#define FRAME_LINK_OVERHEAD 24
#define FRAME_ETHERNET_MAX  1518u
/* Headers from Ethernet to the last extended one, padding and ICRC: not included in the path
 * MTU. */
#define FRAME_ROCE_MAX  112u
#define FRAME_MIN_BYTES 60 /* layer 2 without FCS, IEEE 802.3 */

/* Layer-2 bytes of the longest frame of a fabric with this path MTU. */
static inline uint32_t frame_longest(uint32_t mtu)
{
    return mtu + FRAME_ROCE_MAX > FRAME_ETHERNET_MAX ? mtu + FRAME_ROCE_MAX : FRAME_ETHERNET_MAX;
}

#endif
