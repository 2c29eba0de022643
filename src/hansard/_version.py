"""The version, in a file of its own so that ``hansard --version`` need not import anything else."""

__version__ = "0.2.0.dev0"
