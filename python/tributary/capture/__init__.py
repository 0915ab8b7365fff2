# SPDX-License-Identifier: BSD-3-Clause
"""Captures links into one pcapng, an interface for each, in order of fabric time: what ``trib capture`` runs for several links, for a FILE.pcapng,
for "-", and for links of other machines.

The switch processes write each link's frames into a file of its own; this process reads them as they grow, merges them by their times, and
frees what it has read.
"""
