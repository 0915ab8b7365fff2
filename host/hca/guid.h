/* SPDX-License-Identifier: BSD-3-Clause */
/* Properties of an HCA port that both verbs and sysfs report: its capabilities, and its GUID (the
 * EUI-64 of its MAC, in network byte order). */
#ifndef TRIB_HOST_HCA_GUID_H
#define TRIB_HOST_HCA_GUID_H

#include "roce/wire.h"

#include <string.h>

#define HCA_PORT_CAPS 0x04010000u /* IBV_PORT_CM_SUP, IBV_PORT_IP_BASED_GIDS */

static inline void hca_guid_of_ip(uint32_t ip, uint8_t guid[8])
{
    uint8_t mac[6];

    roce_mac_of_ip(ip, mac);
    guid[0] = mac[0] ^ 2, guid[1] = mac[1], guid[2] = mac[2];
    guid[3] = 0xff, guid[4] = 0xfe;
    memcpy(guid + 5, mac + 3, 3);
}

#endif
