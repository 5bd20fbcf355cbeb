"""What all tests share: one torch thread, as every engine uses, and a Ctrl-C that works."""

import signal

import torch

torch.set_num_threads(1)

# A shell starts background jobs with Ctrl-C ignored,
# and the runs that tests interrupt would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
