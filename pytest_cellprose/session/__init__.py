"""The run as pytest sees it: in the controller, in xdist's workers, in its tests and in the terminal."""
