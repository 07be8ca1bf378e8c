"""The demo's build from and to an object store, beside the same build on the local disk."""

from pathlib import Path

from command_runs import commands
from maskmill.storage import files

_INPUT = "tests/data/dump/enwiki-sample-multistream.xml.bz2"  # as examples/demo.yaml names it


def build_demo_locally(folder: Path) -> dict[str, str]:
    """Build the demo below a folder; return the digests of its data."""
    done = commands.maskmill("build", "examples/demo.yaml", *commands.IN_MEMORY, f"--output={folder}/local")
    assert done.returncode == 0, done.stderr
    return commands.digests(folder / "local", manifests=False)


def write_demo_config(folder: Path, root: str) -> Path:
    """Upload the demo's input below the root of a store; return a file of the build that reads it there."""
    files.write_bytes(f"{root}/in/dump.xml.bz2", commands.DUMP.read_bytes())
    config = folder / "store.yaml"
    config.write_text((commands.ROOT / "examples" / "demo.yaml").read_text().replace(_INPUT, f"{root}/in/dump.xml.bz2"))
    return config


def build_demo(config: Path, root: str) -> str:
    """Build into the store; return what the build printed."""
    done = commands.maskmill("build", config, *commands.IN_MEMORY, f"--output={root}/demo")
    assert done.returncode == 0, done.stderr
    return done.stdout


def digests_in_store(root: str) -> dict[str, str]:
    """Return the digests of the data that the build wrote, and of its report."""
    made = {path.removeprefix(f"{root}/demo/"): files.sha256_of(path) for path in files.list_below(f"{root}/demo")}
    return {name: digest for name, digest in made.items() if ".maskmill/" not in name and "manifest.json" not in name}
