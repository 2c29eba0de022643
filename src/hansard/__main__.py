"""``python -m hansard`` is ``hansard``."""

import sys

from hansard.cli import main

if __name__ == "__main__":  # the processes of `hansard import` read this file too
    sys.exit(main())
