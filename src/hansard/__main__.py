"""``python -m hansard`` is ``hansard``."""

import sys

from hansard.cli import main

sys.exit(main())
