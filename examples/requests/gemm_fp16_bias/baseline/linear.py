"""The baseline of the card: for weights that are not quantized SGLang's linear layers call torch's own linear."""

from __future__ import annotations

from typing import Any

import torch


def entry(*, x: Any, weight: Any, bias: Any, out: Any) -> None:
    """Write x @ weight.T + bias into the given tensor: what torch.nn.functional.linear runs, without its allocation."""
    torch.addmm(bias, x, weight.t(), out=out)
