"""`python -m transforms.kernels [STEP…]`: compiles every kernel, so that the processes that follow start warm."""

import sys
import time

from transforms.kernels import cache_directories, warm


def main() -> None:
    """Warms the cache and says where it is."""
    start = time.perf_counter()
    names = warm(sys.argv[1:])
    seconds = time.perf_counter() - start
    where = ", ".join(map(str, cache_directories()))
    sys.stdout.write(f"{', '.join(names)}: warm after {seconds:.1f} s; machine code is looked for in {where}\n")


if __name__ == "__main__":
    main()
