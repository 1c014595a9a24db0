"""What the protocol fixes: the roles of encodings and models, repeats, and digests of the method."""
