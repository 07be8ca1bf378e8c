"""Running a graph: the local runner and its workers, settings of other runners, signals."""
