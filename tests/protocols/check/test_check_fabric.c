/* SPDX-License-Identifier: BSD-3-Clause */
/* Small runs of a protocol of one packet a rank, compared packet by packet: ways, times on links, what
 * a seed loses, delays and forges. */
#include "tests/protocols/check/summing.h"

struct whole {
    unsigned leafs, ops;
    enum act act;
    uint32_t duplication, reordering, marks, loss, hostile;
    int64_t jitter_ps, late_ps;
    unsigned marked;
    const char *why;   /* NULL: it does not fail */
    const char *calls; /* o: job_open, its children and ranks, 100 more at the root; s: start */
    const char *trace;
};

/* A packet of 6 bytes takes 88 x 8 ns on each link of 1 Gb/s, and 1 us; ranks start 0.5 us apart. */
static const struct whole wholes[] = {
    {.leafs = 1,
     .ops = 3,
     .act = ACT_RIGHT,
     .calls = "o3.103 s1.0 s1.1 s1.2 s1.0 s1.1 s1.2 s1.0 s1.1 s1.2 c1.0 c1.1 c1.2 j3.3 ",
     .trace = "packet 1  1.704 us  job 0, switch 0, from child 0: 2 + 4 bytes, head 0000\n"
              "packet 2  2.204 us  job 0, switch 0, from child 1: 2 + 4 bytes, head 0000\n"
              "packet 3  2.704 us  job 0, switch 0, from child 2: 2 + 4 bytes, head 0000\n"
              "packet 4  4.408 us  job 0, rank 0, from its switch: 2 + 4 bytes, head 0100\n"
              "packet 5  4.408 us  job 0, rank 1, from its switch: 2 + 4 bytes, head 0100\n"
              "packet 6  4.408 us  job 0, rank 2, from its switch: 2 + 4 bytes, head 0100\n"
              "packet 7  6.112 us  job 0, switch 0, from child 0: 2 + 4 bytes, head 0001\n"
              "packet 8  6.112 us  job 0, switch 0, from child 1: 2 + 4 bytes, head 0001\n"
              "packet 9  6.112 us  job 0, switch 0, from child 2: 2 + 4 bytes, head 0001\n"
              "packet 10  7.816 us  job 0, rank 0, from its switch: 2 + 4 bytes, head 0101\n"
              "packet 11  7.816 us  job 0, rank 1, from its switch: 2 + 4 bytes, head 0101\n"
              "packet 12  7.816 us  job 0, rank 2, from its switch: 2 + 4 bytes, head 0101\n"
              "packet 13  10.520 us  job 0, switch 0, from child 0: 2 + 4 bytes, head 0002\n"
              "packet 14  10.520 us  job 0, switch 0, from child 1: 2 + 4 bytes, head 0002\n"
              "packet 15  10.520 us  job 0, switch 0, from child 2: 2 + 4 bytes, head 0002\n"
              "packet 16  12.224 us  job 0, rank 0, from its switch: 2 + 4 bytes, head 0102\n"
              "packet 17  12.224 us  job 0, rank 1, from its switch: 2 + 4 bytes, head 0102\n"
              "packet 18  12.224 us  job 0, rank 2, from its switch: 2 + 4 bytes, head 0102\n"},
    {.leafs = 2,
     .ops = 2,
     .act = ACT_RIGHT,
     .calls = "o2.2 o3.3 o2.105 s1.0 s1.1 s1.2 s1.3 s1.4 s1.0 s1.2 s1.4 s1.1 s1.3 c1.0 c1.1 c1.2 "
              "c1.3 c1.4 j2.2 j3.3 j2.5 ",
     .trace = "packet 1  1.704 us  job 0, leaf 1, from child 0: 2 + 4 bytes, head 0000\n"
              "packet 2  2.204 us  job 0, leaf 2, from child 0: 2 + 4 bytes, head 0000\n"
              "packet 3  2.704 us  job 0, leaf 1, from child 1: 2 + 4 bytes, head 0000\n"
              "packet 4  3.204 us  job 0, leaf 2, from child 1: 2 + 4 bytes, head 0000\n"
              "packet 5  3.704 us  job 0, leaf 1, from child 2: 2 + 4 bytes, head 0000\n"
              "packet 6  4.908 us  job 0, switch 0, from child 1: 2 + 4 bytes, head 0000\n"
              "packet 7  5.408 us  job 0, switch 0, from child 0: 2 + 4 bytes, head 0000\n"
              "packet 8  7.112 us  job 0, leaf 1, from its parent: 2 + 4 bytes, head 0100\n"
              "packet 9  7.112 us  job 0, leaf 2, from its parent: 2 + 4 bytes, head 0100\n"
              "packet 10  8.816 us  job 0, rank 0, from its switch: 2 + 4 bytes, head 0100\n"
              "packet 11  8.816 us  job 0, rank 2, from its switch: 2 + 4 bytes, head 0100\n"
              "packet 12  8.816 us  job 0, rank 4, from its switch: 2 + 4 bytes, head 0100\n"
              "packet 13  8.816 us  job 0, rank 1, from its switch: 2 + 4 bytes, head 0100\n"
              "packet 14  8.816 us  job 0, rank 3, from its switch: 2 + 4 bytes, head 0100\n"
              "packet 15  10.520 us  job 0, leaf 1, from child 0: 2 + 4 bytes, head 0001\n"
              "packet 16  10.520 us  job 0, leaf 1, from child 1: 2 + 4 bytes, head 0001\n"
              "packet 17  10.520 us  job 0, leaf 1, from child 2: 2 + 4 bytes, head 0001\n"
              "packet 18  10.520 us  job 0, leaf 2, from child 0: 2 + 4 bytes, head 0001\n"
              "packet 19  10.520 us  job 0, leaf 2, from child 1: 2 + 4 bytes, head 0001\n"
              "packet 20  12.224 us  job 0, switch 0, from child 0: 2 + 4 bytes, head 0001\n"
              "packet 21  12.224 us  job 0, switch 0, from child 1: 2 + 4 bytes, head 0001\n"
              "packet 22  13.928 us  job 0, leaf 1, from its parent: 2 + 4 bytes, head 0101\n"
              "packet 23  13.928 us  job 0, leaf 2, from its parent: 2 + 4 bytes, head 0101\n"
              "packet 24  15.632 us  job 0, rank 0, from its switch: 2 + 4 bytes, head 0101\n"
              "packet 25  15.632 us  job 0, rank 2, from its switch: 2 + 4 bytes, head 0101\n"
              "packet 26  15.632 us  job 0, rank 4, from its switch: 2 + 4 bytes, head 0101\n"
              "packet 27  15.632 us  job 0, rank 1, from its switch: 2 + 4 bytes, head 0101\n"
              "packet 28  15.632 us  job 0, rank 3, from its switch: 2 + 4 bytes, head 0101\n"},
    {.leafs = 1,
     .ops = 1,
     .act = ACT_ROUTES,
     .calls = "o3.103 s1.0 s1.1 s1.2 c1.0 c1.1 c1.2 j3.3 ",
     .trace =
         "packet 1  1.704 us  job 0, switch 0, from child 0: 2 + 4 bytes, head 0000\n"
         "packet 2  2.204 us  job 0, switch 0, from child 1: 2 + 4 bytes, head 0000\n"
         "packet 3  2.704 us  job 0, switch 0, from child 2: 2 + 4 bytes, head 0000\n"
         "packet 4  3.792 us  job 0, switch 0, from child 0: 2 + 0 bytes, head 0200\n"
         "packet 5  4.160 us  job 0, rank 2, from rank 0: 9 + 0 bytes, head 0200020304050607 08\n"
         "packet 6  4.408 us  job 0, rank 0, from its switch: 2 + 4 bytes, head 0100\n"
         "packet 7  4.496 us  job 0, switch 0, from child 0: 1 + 5 bytes, head 03\n"
         "packet 8  4.808 us  job 0, rank 1, from rank 0: 1 + 3 bytes, head 02\n"
         "packet 9  4.864 us  job 0, rank 2, from its switch: 2 + 4 bytes, head 0100\n"
         "packet 10  5.512 us  job 0, rank 1, from its switch: 2 + 4 bytes, head 0100\n"},
    {.leafs = 2,
     .ops = 1,
     .act = ACT_ROUTES,
     .calls = "o2.2 o3.3 o2.105 s1.0 s1.1 s1.2 s1.3 s1.4 c1.0 c1.1 c1.2 c1.3 c1.4 j2.2 j3.3 j2.5 ",
     .trace =
         "packet 1  1.704 us  job 0, leaf 1, from child 0: 2 + 4 bytes, head 0000\n"
         "packet 2  2.204 us  job 0, leaf 2, from child 0: 2 + 4 bytes, head 0000\n"
         "packet 3  2.704 us  job 0, leaf 1, from child 1: 2 + 4 bytes, head 0000\n"
         "packet 4  3.204 us  job 0, leaf 2, from child 1: 2 + 4 bytes, head 0000\n"
         "packet 5  3.704 us  job 0, leaf 1, from child 2: 2 + 4 bytes, head 0000\n"
         "packet 6  3.792 us  job 0, leaf 1, from child 0: 2 + 0 bytes, head 0200\n"
         "packet 7  4.160 us  job 0, rank 4, from rank 0: 9 + 0 bytes, head 0200020304050607 08\n"
         "packet 8  4.496 us  job 0, leaf 1, from child 0: 1 + 5 bytes, head 03\n"
         "packet 9  4.908 us  job 0, switch 0, from child 1: 2 + 4 bytes, head 0000\n"
         "packet 10  5.456 us  job 0, rank 4, from its switch: 1 + 0 bytes, head 02\n"
         "packet 11  5.512 us  job 0, switch 0, from child 0: 2 + 4 bytes, head 0000\n"
         "packet 12  6.200 us  job 0, rank 4, from rank 0: 1 + 5 bytes, head 03\n"
         "packet 13  7.216 us  job 0, leaf 1, from its parent: 2 + 4 bytes, head 0100\n"
         "packet 14  7.216 us  job 0, leaf 2, from its parent: 2 + 4 bytes, head 0100\n"
         "packet 15  8.184 us  job 0, rank 1, from rank 0: 1 + 3 bytes, head 02\n"
         "packet 16  8.920 us  job 0, rank 0, from its switch: 2 + 4 bytes, head 0100\n"
         "packet 17  8.920 us  job 0, rank 2, from its switch: 2 + 4 bytes, head 0100\n"
         "packet 18  8.920 us  job 0, rank 4, from its switch: 2 + 4 bytes, head 0100\n"
         "packet 19  8.920 us  job 0, rank 1, from its switch: 2 + 4 bytes, head 0100\n"
         "packet 20  8.920 us  job 0, rank 3, from its switch: 2 + 4 bytes, head 0100\n"},
    {.leafs = 1,
     .ops = 1,
     .act = ACT_RIGHT,
     .duplication = 1000000,
     .marks = 1000000,
     .late_ps = 1,
     .why =
         "job 0 of 3 ranks, rank 0, operation 0: element 0 of 1 is 1874772078, expected 418305430",
     .marked = 7,
     .calls = "o3.103 s1.0 s1.1 s1.2 c1.0 c1.1 c1.2 j3.3 ",
     .trace = "packet 1  1.704 us  job 0, switch 0, from child 0: 2 + 4 bytes, head 0000\n"
              "packet 2  1.704 us  job 0, switch 0, from child 0: 2 + 4 bytes, head 0000\n"
              "packet 3  2.204 us  job 0, switch 0, from child 1: 2 + 4 bytes, head 0000\n"
              "packet 4  2.204 us  job 0, switch 0, from child 1: 2 + 4 bytes, head 0000\n"
              "packet 5  2.704 us  job 0, switch 0, from child 2: 2 + 4 bytes, head 0000\n"
              "packet 6  2.704 us  job 0, switch 0, from child 2: 2 + 4 bytes, head 0000\n"
              "packet 7  3.908 us  job 0, rank 0, from its switch: 2 + 4 bytes, head 0100\n"},
    {.leafs = 2,
     .ops = 1,
     .act = ACT_ROUTES,
     .reordering = 500000,
     .marks = 500000,
     .jitter_ps = 300000,
     .late_ps = 900000,
     .marked = 10,
     .calls = "o2.2 o3.3 o2.105 s1.0 s1.1 s1.2 s1.3 s1.4 c1.0 c1.1 c1.2 c1.3 c1.4 j2.2 j3.3 j2.5 ",
     .trace =
         "packet 1  2.654 us  job 0, leaf 1, from child 0: 2 + 4 bytes, head 0000\n"
         "packet 2  2.941 us  job 0, leaf 1, from child 1: 2 + 4 bytes, head 0000\n"
         "packet 3  3.065 us  job 0, leaf 2, from child 0: 2 + 4 bytes, head 0000\n"
         "packet 4  3.242 us  job 0, leaf 2, from child 1: 2 + 4 bytes, head 0000\n"
         "packet 5  3.869 us  job 0, leaf 1, from child 2: 2 + 4 bytes, head 0000\n"
         "packet 6  3.873 us  job 0, leaf 1, from child 0: 2 + 0 bytes, head 0200\n"
         "packet 7  4.168 us  job 0, rank 4, from rank 0: 9 + 0 bytes, head 0200020304050607 08\n"
         "packet 8  4.497 us  job 0, leaf 1, from child 0: 1 + 5 bytes, head 03\n"
         "packet 9  5.198 us  job 0, switch 0, from child 1: 2 + 4 bytes, head 0000\n"
         "packet 10  5.692 us  job 0, switch 0, from child 0: 2 + 4 bytes, head 0000\n"
         "packet 11  5.721 us  job 0, rank 4, from its switch: 1 + 0 bytes, head 02\n"
         "packet 12  6.787 us  job 0, rank 4, from rank 0: 1 + 5 bytes, head 03\n"
         "packet 13  7.672 us  job 0, leaf 1, from its parent: 2 + 4 bytes, head 0100\n"
         "packet 14  8.118 us  job 0, leaf 2, from its parent: 2 + 4 bytes, head 0100\n"
         "packet 15  8.258 us  job 0, rank 1, from rank 0: 1 + 3 bytes, head 02\n"
         "packet 16  9.654 us  job 0, rank 4, from its switch: 2 + 4 bytes, head 0100\n"
         "packet 17  9.743 us  job 0, rank 0, from its switch: 2 + 4 bytes, head 0100\n"
         "packet 18  9.934 us  job 0, rank 1, from its switch: 2 + 4 bytes, head 0100\n"
         "packet 19  10.040 us  job 0, rank 3, from its switch: 2 + 4 bytes, head 0100\n"
         "packet 20  10.282 us  job 0, rank 2, from its switch: 2 + 4 bytes, head 0100\n"},
    {.leafs = 2,
     .ops = 1,
     .act = ACT_ROUTES,
     .hostile = 1000000,
     .calls = "o2.2 o3.3 o2.105 s1.0 s1.1 s1.2 s1.3 s1.4 c1.0 c1.1 c1.2 c1.3 c1.4 j2.2 j3.3 j2.5 ",
     .trace =
         "packet 1  1.704 us  job 0, leaf 1, from child 0: 2 + 4 bytes, head 0000\n"
         "packet 2  2.204 us  job 0, leaf 2, from child 0: 2 + 4 bytes, head 0000\n"
         "packet 3  2.704 us  job 0, leaf 1, from child 1: 2 + 4 bytes, head 0000\n"
         "packet 4  3.204 us  job 0, leaf 2, from child 1: 2 + 4 bytes, head 0000\n"
         "packet 5  3.263 us  job 0, leaf 1, from child 0: forged, 2 + 4 bytes, head 7800\n"
         "packet 6  3.704 us  job 0, leaf 1, from child 2: 2 + 4 bytes, head 0000\n"
         "packet 7  3.792 us  job 0, leaf 1, from child 0: 2 + 0 bytes, head 0200\n"
         "packet 8  4.160 us  job 0, rank 4, from rank 0: 9 + 0 bytes, head 0200020304050607 08\n"
         "packet 9  4.496 us  job 0, leaf 1, from child 0: 1 + 5 bytes, head 03\n"
         "packet 10  4.908 us  job 0, switch 0, from child 1: 2 + 4 bytes, head 0000\n"
         "packet 11  5.312 us  job 0, leaf 2, from child 1: forged, 0 + 0 bytes, head\n"
         "packet 12  5.456 us  job 0, rank 4, from its switch: 1 + 0 bytes, head 02\n"
         "packet 13  5.512 us  job 0, switch 0, from child 0: 2 + 4 bytes, head 0000\n"
         "packet 14  5.827 us  job 0, leaf 1, from child 0: forged, 2 + 35 bytes, head ddea\n"
         "packet 15  6.200 us  job 0, rank 4, from rank 0: 1 + 5 bytes, head 03\n"
         "packet 16  7.216 us  job 0, leaf 1, from its parent: 2 + 4 bytes, head 0100\n"
         "packet 17  7.216 us  job 0, leaf 2, from its parent: 2 + 4 bytes, head 0100\n"
         "packet 18  8.114 us  job 0, leaf 1, from child 0: forged, 27 + 0 bytes, head "
         "02e7000000000000 0000000000000000 0000000000000000 000000\n"
         "packet 19  8.184 us  job 0, rank 1, from rank 0: 1 + 3 bytes, head 02\n"
         "packet 20  8.681 us  job 0, leaf 1, from rank 3: forged, 2 + 0 bytes, head 7ba0\n"
         "packet 21  8.920 us  job 0, rank 0, from its switch: 2 + 4 bytes, head 0100\n"
         "packet 22  8.920 us  job 0, rank 2, from its switch: 2 + 4 bytes, head 0100\n"
         "packet 23  8.920 us  job 0, rank 4, from its switch: 2 + 4 bytes, head 0100\n"
         "packet 24  8.920 us  job 0, rank 1, from its switch: 2 + 4 bytes, head 0100\n"
         "packet 25  8.920 us  job 0, rank 3, from its switch: 2 + 4 bytes, head 0100\n"},
    {.leafs = 1,
     .ops = 2,
     .act = ACT_ROUTES,
     .hostile = 1000000,
     .calls = "o3.103 s1.0 s1.1 s1.2 s1.0 s1.2 s1.1 c1.0 c1.1 c1.2 j3.3 ",
     .trace =
         "packet 1  1.704 us  job 0, switch 0, from child 0: 2 + 4 bytes, head 0000\n"
         "packet 2  2.204 us  job 0, switch 0, from child 1: 2 + 4 bytes, head 0000\n"
         "packet 3  2.704 us  job 0, switch 0, from child 2: 2 + 4 bytes, head 0000\n"
         "packet 4  3.263 us  job 0, switch 0, from child 0: forged, 2 + 4 bytes, head 7800\n"
         "packet 5  3.401 us  job 0, switch 0, from child 0: forged, 2 + 0 bytes, head 0000\n"
         "packet 6  3.792 us  job 0, switch 0, from child 0: 2 + 0 bytes, head 0200\n"
         "packet 7  4.160 us  job 0, rank 2, from rank 0: 9 + 0 bytes, head 0200020304050607 08\n"
         "packet 8  4.408 us  job 0, rank 0, from its switch: 2 + 4 bytes, head 0100\n"
         "packet 9  4.496 us  job 0, switch 0, from child 0: 1 + 5 bytes, head 03\n"
         "packet 10  4.808 us  job 0, rank 1, from rank 0: 1 + 3 bytes, head 02\n"
         "packet 11  4.864 us  job 0, rank 2, from its switch: 2 + 4 bytes, head 0100\n"
         "packet 12  4.958 us  job 0, switch 0, from child 0: forged, 0 + 5 bytes, head\n"
         "packet 13  5.264 us  job 0, rank 2, from its switch: forged, 58 + 0 bytes, head "
         "0000000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000060000 "
         "0000000000000000 0000000000000000 0000\n"
         "packet 14  5.512 us  job 0, rank 1, from its switch: 2 + 4 bytes, head 0100\n"
         "packet 15  5.528 us  job 0, rank 2, from its switch: 1 + 0 bytes, head 02\n"
         "packet 16  5.827 us  job 0, switch 0, from child 0: forged, 2 + 35 bytes, head ddea\n"
         "packet 17  6.112 us  job 0, switch 0, from child 0: 2 + 4 bytes, head 0001\n"
         "packet 18  6.568 us  job 0, switch 0, from child 2: 2 + 4 bytes, head 0001\n"
         "packet 19  7.192 us  job 0, rank 1, from its switch: forged, 2 + 0 bytes, head 3b00\n"
         "packet 20  7.216 us  job 0, switch 0, from child 1: 2 + 4 bytes, head 0001\n"
         "packet 21  8.107 us  job 0, switch 0, from child 0: forged, 2 + 0 bytes, head 0200\n"
         "packet 22  8.200 us  job 0, switch 0, from child 0: 2 + 0 bytes, head 0200\n"
         "packet 23  8.568 us  job 0, rank 2, from rank 0: 9 + 0 bytes, head 0200020304050607 08\n"
         "packet 24  8.730 us  job 0, rank 0, from its switch: forged, 27 + 0 bytes, head "
         "00e7000000000000 0000000000000000 0000000000000000 000000\n"
         "packet 25  8.758 us  job 0, switch 0, from child 2: forged, 2 + 0 bytes, head db01\n"
         "packet 26  8.904 us  job 0, switch 0, from child 0: 1 + 5 bytes, head 03\n"
         "packet 27  8.920 us  job 0, rank 0, from its switch: 2 + 4 bytes, head 0101\n"
         "packet 28  9.124 us  job 0, switch 0, from child 1: forged, 16 + 1 bytes, head "
         "03000000f7000000 00570000d8000000\n"
         "packet 29  9.137 us  job 0, rank 2, from rank 0: forged, 5 + 0 bytes, head 0200a07b04\n"
         "packet 30  9.216 us  job 0, rank 1, from rank 0: 1 + 3 bytes, head 02\n"
         "packet 31  9.272 us  job 0, rank 2, from rank 0: 1 + 5 bytes, head 03\n"
         "packet 32  9.750 us  job 0, rank 1, from its switch: forged, 0 + 109 bytes, head\n"
         "packet 33  9.878 us  job 0, rank 1, from its switch: forged, 1 + 0 bytes, head 5d\n"
         "packet 34  9.920 us  job 0, rank 1, from its switch: 2 + 4 bytes, head 0101\n"
         "packet 35  9.976 us  job 0, rank 2, from its switch: 2 + 4 bytes, head 0101\n"},
};

static void runs_packet_by_packet(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof(wholes) / sizeof(wholes[0]); i++) {
        const struct whole *w = &wholes[i];
        struct check_case c = small_case(w->leafs, w->ops);
        struct fabric_result r;
        char *trace;

        c.duplication = w->duplication, c.reordering = w->reordering;
        c.marks = w->marks, c.loss = w->loss, c.hostile = w->hostile;
        c.jitter_ps = w->jitter_ps, c.late_ps = w->late_ps;
        r = run_case(&c, w->act, 0, &trace);
        if (strcmp(trace, w->trace) || strcmp(seen.calls, w->calls) || seen.marked != w->marked)
            printf("%u:\n%s%s\n%u\n%s\n", i, trace, seen.calls, seen.marked, r.why);
        assert_string_equal(trace, w->trace);
        assert_string_equal(seen.calls, w->calls);
        assert_int_equal(seen.marked, w->marked);
        assert_int_equal(seen.packets, r.packets);
        assert_int_equal(r.failed, !!w->why);
        assert_string_equal(r.why, w->why ? w->why : "");
        assert_int_equal(r.memory_peak, 16);
        assert_true(r.jobs == 1 && !r.refused && !r.leaked);
        free(trace);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(runs_packet_by_packet)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
