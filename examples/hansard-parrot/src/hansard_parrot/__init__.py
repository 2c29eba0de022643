"""Parrot, an agent that says what it heard, for hansard: an example of everything that a package can add."""
