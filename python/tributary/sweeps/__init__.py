# SPDX-License-Identifier: BSD-3-Clause
"""Sweeps: many simulations, a process each, resumable.

``files`` says what is in a sweep's folder; ``simulation`` runs one line; ``grid`` is ``tributary.sweep``, all combinations over the cores of a
machine; ``command`` is ``trib-sweep``, a task's lines of a list on a cluster, and ``vary`` its --vary.
"""
