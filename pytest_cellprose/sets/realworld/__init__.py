"""The real-world held-out set: questions about public workbooks that stay with their publishers."""
