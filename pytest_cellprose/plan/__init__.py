"""From settings and folders to a plan: which cells there are, what they cost, and whether they may run."""
