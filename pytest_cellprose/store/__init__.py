"""What a run keeps on disk: its records, its manifest, its ledger and its lock."""
