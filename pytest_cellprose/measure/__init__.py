"""From a planned cell to its record: the text, the price, the call, the score."""
