"""One file for each family of agents. Each lists its agents in `AGENTS` and is found by itself."""
