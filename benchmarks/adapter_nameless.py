"""The tape without names and lines, as an adapter for a measuring driver: what recording them costs.

The work is that of `adapter_tape`; a process that loads this one records no names any more.
"""

from __future__ import annotations

import os
import sys

import tinyattn as ta

sys.path.append(os.path.dirname(os.path.abspath(__file__)))

from adapter_tape import attn, chain, mlp, mlp_scalar, ops, versions

__all__ = ["attn", "chain", "mlp", "mlp_scalar", "ops", "versions"]

for_good = ta.no_names()
for_good.__enter__()
