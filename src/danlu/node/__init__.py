"""The program beside a task: stage, shim, supervise, sample, sync."""
