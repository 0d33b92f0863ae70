import torch


def entry(*, x, out):
    """Write softmax(x) into out: CUDA tensors in the dtypes of the contract, here bf16."""
    torch.softmax(x, -1, out=out)
