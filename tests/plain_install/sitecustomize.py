"""Hides what a plain install does not bring: the packages that the environment names cannot be imported."""

import os
import sys

HIDDEN = frozenset(os.environ["HIDDEN_PACKAGES"].split())


class Hides:
    """A finder that finds nothing, for packages that are not to be there."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Hides)
