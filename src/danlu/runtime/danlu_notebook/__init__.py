"""The program of a notebook's instance: `python -m danlu_notebook`. The standard library only: it
runs with the Python of whatever image the notebook has.
"""
