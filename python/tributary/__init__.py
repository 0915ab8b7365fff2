# SPDX-License-Identifier: BSD-3-Clause
"""Collectives on a Tributary fabric, for Python programs.

``tributary.coll``   communicators and operations on arrays (anything with the buffer protocol)
``tributary.torch``  the backend "trib" of ``torch.distributed``

The program runs as a host of a fabric that is up: ``trib exec CONF HOST -- python3 PROGRAM``.
"""

__version__ = "0.2.0"
