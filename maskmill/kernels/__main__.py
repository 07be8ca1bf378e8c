"""`python -m maskmill.kernels MODULE…`: a process of `compiler.prepare`. Users have `maskmill warm-up`."""

import sys

from maskmill.kernels.compiler import compile_in_this_process

if __name__ == "__main__":
    compile_in_this_process(sys.argv[1:])
