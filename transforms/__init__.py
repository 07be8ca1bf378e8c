"""One module per step of the data path: plain functions first, then the PTransform that wires them."""
