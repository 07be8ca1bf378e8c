"""The dump that something was made from, and the data sets that were made from something."""
