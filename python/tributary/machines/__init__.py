# SPDX-License-Identifier: BSD-3-Clause
"""Runs trib on the other machines of a fabric, by a remote shell: what ``trib up --launch``, ``trib status --machines``, and ``trib link`` and
``trib capture`` of links of others run."""
