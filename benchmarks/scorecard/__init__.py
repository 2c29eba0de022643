"""The scorecard: the same measurements for hansard and for other tools that read agents, from their published packages.

    make scorecard            # installs into build/peers, measures, prints one table, writes docs/scorecard.md

One file per tool in `peers/`, one file per measurement: `kept`, `ends`, `follow`, `speed`. What is looked for, and how, is in `counting`.
"""
