"""The embedded engine: a folder per session, its log a text file that `cat` and `jq` can read."""
