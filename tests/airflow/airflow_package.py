"""Makes the modules of deploy/airflow that need no Airflow importable."""

import sys

from conftest import ROOT

PACKAGE = ROOT / "deploy" / "airflow"
if str(PACKAGE) not in sys.path:
    sys.path.append(str(PACKAGE))

from maskmill_airflow import commands, processes  # noqa: E402

__all__ = ["PACKAGE", "commands", "processes"]
