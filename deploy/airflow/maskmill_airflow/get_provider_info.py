"""What Airflow asks a provider package for."""

from typing import Any


def get_provider_info() -> dict[str, Any]:
    """The package's name, its modules and its kind of connection, in the form of Airflow's provider schema."""
    integration = "maskmill"
    return {
        "package-name": "maskmill-airflow",
        "name": "maskmill",
        "description": "Runs the maskmill command: releases of pre-training data, made when a new dump appears.",
        "integrations": [{"integration-name": integration, "external-doc-url": "", "tags": ["software"]}],
        "operators": [
            {"integration-name": integration, "python-modules": ["maskmill_airflow.operators.maskmill"]},
        ],
        "hooks": [{"integration-name": integration, "python-modules": ["maskmill_airflow.hooks.maskmill"]}],
        "triggers": [{"integration-name": integration, "python-modules": ["maskmill_airflow.triggers.new_dump"]}],
        "connection-types": [
            {
                "connection-type": "maskmill",
                "hook-class-name": "maskmill_airflow.hooks.maskmill.MaskmillHook",
            }
        ],
    }
