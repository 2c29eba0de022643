"""`hansard demo`: recordings that come with the package, and an agent to talk to."""
