"""What runs a notebook (.ipynb) as a job's program:
`python -m danlu_run_notebook FILE [--NAME=VALUE]...`.

It runs in the job's environment, of which it needs nbclient and ipykernel, and has nothing of ours.
"""
