"""Where a model's commands run: what they may reach and use, and the tools that run them (docs/sandbox.md)."""
