"""`python -m danlu`: the program `danlu`, where its script is not on the path."""

from __future__ import annotations

import sys

from danlu.faces.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
