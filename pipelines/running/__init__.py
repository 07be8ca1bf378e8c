"""How a graph runs: the local runner and its workers, settings of other runners, signals."""
