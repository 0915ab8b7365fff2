/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of test_stage_steps.c: collective and algorithm; steps of all ranks and all there is to know of them, plain, staged, and of memory that HCAs reach. */
#ifndef TRIB_TESTS_COLLECTIVE_STAGE_STEPS_H
#define TRIB_TESTS_COLLECTIVE_STAGE_STEPS_H

static const char *const steps_of[] = {
    /* clang-format off */
    "all_reduce ring: 1120 e04de11de8a4aff0 2016 e0df659bf151b097 1568 e2ffa028c02fdec7",
    "all_reduce tree: 1220 498e1eedd058b053 2196 b7a66d6484dd45bd 1708 43d663b0f61a3f34",
    "all_reduce halving: 630 e0e75bb9de7a5feb 1134 b8c30f8022089b4b 882 1085c74bca693855",
    "all_reduce direct: 1120 ea145fc9c30bc74b 2016 4cf73047e3a9f68c 1568 21a5c302cef3e764",
    "reduce ring: 636 45987dbc2a29d6e8 1060 44b0856294538dc 848 279dd73b285ebc0a",
    "reduce tree: 732 855aa1f4aa092ca6 1220 7401e26064d7f37d 976 c033d76250bed7cb",
    "reduce chain: 636 45987dbc2a29d6e8 1060 44b0856294538dc 848 279dd73b285ebc0a",
    "broadcast ring: 427 d0b189be5d2f2f0 851 a4829d3e00765bb3 639 c2e0ac37dd5a4030",
    "broadcast tree: 491 f517f81c1c1b70ec 979 af09de248edbbf84 735 77f22189af89262c",
    "broadcast chain: 427 d0b189be5d2f2f0 851 a4829d3e00765bb3 639 c2e0ac37dd5a4030",
    "all_gather ring: 935 881ea6a53cf48e61 1855 39650d6201901362 1395 7d5269bb1b30bcb3",
    "all_gather halving: 801 cc7763816f075f0e 1587 c11af18a7593f0df 1194 5c86e3130c81f28",
    "all_gather pairwise: 995 34b0db4c9d9d87b2 1915 f879f4951ecbf65c 1455 4bfa21ce6b192613",
    "all_gather direct: 935 24f632d6999b3a4b 1855 86663504d71104f8 1395 3719bfadb0abe64f",
    "reduce_scatter ring: 1380 2c0caa61a9600d90 2300 79edd8d6e9b98f 1840 efe2902e0c3ba50d",
    "reduce_scatter halving: 1204 26d7c91b4bea8780 2020 449e9a9f174f8fab 1612 5cd1894379b70c54",
    "reduce_scatter pairwise: 1440 6754c1de20322211 2360 d688016bfc6e6018 1900 54b99561bb4fdf7",
    "reduce_scatter direct: 1380 aeb71991b820b67 2300 bf14e6bb9bf80c76 1840 cd478a23f3433c75",
    "alltoall pairwise: 995 2af13eb2869b64f3 1915 1775fd327d99b741 1455 11fc16ca71991a4e",
    "alltoall direct: 935 b10ecdbf9ac8dff2 1855 532efb8502cf44e9 1395 9403b3a14b2e694e",
    "gather direct: 187 b75a864d725a0f5f 371 93c31d3bd8b1d897 279 42d4ccaf8586d707",
    "scatter direct: 187 ad610907de3c0b77 371 847f1727615934fc 279 8cee784f06398217",
    "sendrecv direct: 230 3a6a956322ca380a 460 2f382f73661c806d 345 de53a06f304f720f",
    "barrier halving: 90 4a31db247552bc4 180 a1f18a7f5b435265 135 4e77f8b18dcc84bf",
    "barrier direct: 120 7bbaf05f6c172be9 240 ad6acc2b8b0cc11 180 f7c50d59c018066d",
    /* clang-format on */
};
#define STEPS (sizeof(steps_of) / sizeof(steps_of[0]))

#endif
