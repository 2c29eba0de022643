"""Recordings for `hansard demo`: the control protocol of Claude Code 2.1.325, as it was spoken."""
