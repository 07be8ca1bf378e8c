"""`python -m transforms.kernels [STEP…]`: compiles every kernel, so that the processes that follow start warm."""

import sys
import time

from transforms.kernels.cache import KEPT_DAYS, cache_directories, remove_unused
from transforms.kernels.compiler import warm_in_parallel


def main() -> None:
    """Warms the cache, removes what nobody has used for long, and says where the cache is."""
    start = time.perf_counter()
    names = warm_in_parallel(sys.argv[1:])
    seconds = time.perf_counter() - start
    where = ", ".join(map(str, cache_directories()))
    sys.stdout.write(f"{', '.join(names)}: warm after {seconds:.1f} s; machine code is looked for in {where}\n")
    if removed := remove_unused(time.time() - KEPT_DAYS * 24 * 60 * 60):
        sys.stdout.write(f"removed {removed} files that were not used for {KEPT_DAYS} days\n")


if __name__ == "__main__":
    main()
