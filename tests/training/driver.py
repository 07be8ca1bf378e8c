"""Runs `maskmill train …` or `maskmill convert-checkpoint …` in a process of its own, for the tests that kill it."""

import argparse
import sys

from pipelines import options as option_tools
from training.options import ConvertOptions, TrainOptions
from transforms.errors import RunFailedError, UnusableInputError


def main(argv: list[str]) -> int:
    command, *rest = argv
    parser = argparse.ArgumentParser(prog=f"maskmill {command}", allow_abbrev=False)
    kind = {"train": TrainOptions, "convert-checkpoint": ConvertOptions}[command]
    option_tools.add_flags(parser, kind)
    try:
        namespace, _ = option_tools.parse(parser, rest)
        chosen = option_tools.from_flags(kind, namespace)
        if command == "train":
            from training import command as module
        else:
            from training import convert as module
        return module.run(chosen)
    except UnusableInputError as error:
        print(f"maskmill {command}: {error}", file=sys.stderr)
        return 2
    except RunFailedError as error:
        print(f"maskmill {command}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
