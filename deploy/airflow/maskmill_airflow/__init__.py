"""Airflow 3 runs `maskmill`: operators, a trigger for new dumps, and a hook. Nothing here imports maskmill itself."""

__version__ = "1.0.0"
