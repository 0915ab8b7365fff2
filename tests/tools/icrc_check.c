/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks the ICRC of every RoCE v2 frame of a pcap file by zlib's CRC-32, sharing no code with
 * roce/. Annex A17.3.3: eight bytes of ones, then from the IP header to the end of the payload with
 * the fields that may change on the way as ones (IPv4: type of service, time to live, header
 * checksum; IPv6: traffic class, flow label, hop limit; UDP checksum and BTH byte 4); the result
 * little-endian behind it.
 *
 *   icrc_check FILE     prints how many were right; exit 1 if one was wrong or there was none
 */
#include <pcap/pcap.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

/* 1: right, 0: wrong, -1: not RoCE v2. */
static int check(const unsigned char *p, unsigned len)
{
    unsigned char h[40 + 8 + 12];
    unsigned ip_len, body, ip, head;
    unsigned long crc;

    if (len < 14 + 40 + 4)
        return -1;
    ip = p[12] == 0x86 && p[13] == 0xdd && p[14] >> 4 == 6             ? 40
         : p[12] == 0x08 && p[13] == 0 && p[14] == 0x45 && p[23] == 17 ? 20
                                                                       : 0;
    head = ip + 8 + 12;
    if (!ip || len < 14 + head + 4 || (ip == 40 && p[20] != 17) || p[14 + ip + 2] != 4791 >> 8 ||
        p[14 + ip + 3] != (4791 & 0xff))
        return -1;
    ip_len = ip == 20 ? (unsigned)p[16] << 8 | p[17] : 40 + ((unsigned)p[18] << 8 | p[19]);
    if (ip_len < head + 4 || 14 + ip_len > len)
        return 0;
    memcpy(h, p + 14, head);
    if (ip == 20) {
        h[1] = h[8] = h[10] = h[11] = 0xff; /* type of service, time to live, checksum */
    } else {
        h[0] |= 0x0f; /* traffic class, flow label, hop limit */
        h[1] = h[2] = h[3] = h[7] = 0xff;
    }
    h[ip + 6] = h[ip + 7] = 0xff; /* UDP checksum */
    h[ip + 12] = 0xff;            /* BTH: FECN, BECN and reserved */
    body = ip_len - head - 4;
    crc = crc32(0, (const unsigned char *)"\xff\xff\xff\xff\xff\xff\xff\xff", 8);
    crc = crc32(crc, h, head);
    crc = crc32(crc, p + 14 + head, body);
    p += 14 + head + body;
    return crc == ((unsigned long)p[3] << 24 | p[2] << 16 | p[1] << 8 | p[0]);
}

int main(int argc, char **argv)
{
    char err[PCAP_ERRBUF_SIZE];
    struct pcap_pkthdr *hdr;
    const unsigned char *data;
    unsigned long right = 0, wrong = 0, other = 0;
    pcap_t *in = argc == 2 ? pcap_open_offline(argv[1], err) : NULL;

    if (!in) {
        fprintf(stderr, "icrc_check: %s\n", argc == 2 ? err : "expected one pcap file");
        return 2;
    }
    while (pcap_next_ex(in, &hdr, &data) == 1) {
        int ok = check(data, hdr->caplen);

        right += ok == 1;
        wrong += ok == 0;
        other += ok < 0;
    }
    pcap_close(in);
    printf("%lu right, %lu wrong, %lu other frames\n", right, wrong, other);
    return wrong || !right;
}
