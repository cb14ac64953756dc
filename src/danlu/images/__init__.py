"""The pinned environment: which builds of PyTorch run where, and what an image consists of."""
