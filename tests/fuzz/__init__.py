"""Coverage-guided fuzzing: what comes in through each door is changed for as long as that reaches new code.

A door is a module here: ``check(data)`` raises when a promise is broken, ``seeds()`` gives good data to begin with, made of the recordings.
`python -m tests.fuzz DOOR` runs it with atheris (libFuzzer for Python), `make fuzz` all of them.
"""

DOORS = ("framing", "adapters", "log", "cursor", "content")
