"""The verbs of a job's life; they meet in the state table and never import each other."""
