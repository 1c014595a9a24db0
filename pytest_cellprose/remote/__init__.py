"""Workers on other machines; a run without any loads nothing of this."""
