"""Proves that an image works where a job of it is about to run: before the job's own program, in
the same process, with the same user, limits, files and GPUs.

Imports nothing but the standard library; torch and numpy when a check is about them.
"""
