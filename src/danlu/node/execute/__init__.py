"""Commands beside a task's program: one process of ours a command, between it and the server."""
