"""What all tests share: one torch thread, as every engine uses, so that tests are quick on a busy machine."""

import torch

torch.set_num_threads(1)
