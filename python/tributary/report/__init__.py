# SPDX-License-Identifier: BSD-3-Clause
"""Results as one self-contained page: ``trib report`` (docs/report.md). write() is all that others need."""

from __future__ import annotations

from .page import write as write
