"""What all tests begin with."""

from __future__ import annotations

import signal

# What runs in the background of a shell has interrupts ignored, and so would all processes that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
