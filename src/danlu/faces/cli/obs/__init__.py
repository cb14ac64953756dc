"""`danlu obs`: objects and files, listed, copied, compared and removed."""
