#!/usr/bin/env bash
# Installs Airflow and the package maskmill_airflow into an environment of their own, apart from maskmill's.
#
#   deploy/airflow/install.sh DIRECTORY            # 0.5 GB
#   deploy/airflow/install.sh DIRECTORY --pools    # and makes the DAG's pools, where AIRFLOW_HOME has a database
#
# PYTHON names the interpreter, 3.11 to 3.13; the versions in constraints.txt were tried on 3.11.
set -euo pipefail

usage() {
  sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
  exit 2
}

HERE=$(cd "$(dirname "$0")" && pwd)
DIRECTORY=
POOLS=
for argument in "$@"; do
  case ${argument} in
    --pools) POOLS=yes ;;
    -*) usage ;;
    *) [[ -z ${DIRECTORY} ]] || usage; DIRECTORY=${argument} ;;
  esac
done
[[ -n ${DIRECTORY} ]] || usage

if [[ -z ${PYTHON:-} ]]; then
  for candidate in python3.11 python3.12 python3.13; do
    if command -v "${candidate}" >/dev/null; then
      PYTHON=${candidate}
      break
    fi
  done
fi
: "${PYTHON:?there is no Python 3.11, 3.12 or 3.13 on the PATH; name one in PYTHON}"

[[ -x ${DIRECTORY}/bin/python ]] || "${PYTHON}" -m venv "${DIRECTORY}"
PIP=("${DIRECTORY}/bin/pip" install --quiet --disable-pip-version-check)
"${PIP[@]}" --requirement "${HERE}/requirements.txt" --constraint "${HERE}/constraints.txt"
"${PIP[@]}" --no-deps --editable "${HERE}"

if [[ -n ${POOLS} ]]; then
  "${DIRECTORY}/bin/airflow" pools set maskmill 1 "stages of maskmill's releases" >/dev/null
  "${DIRECTORY}/bin/airflow" pools set maskmill_training 1 "trainings on maskmill's releases" >/dev/null
fi
echo "Airflow is in ${DIRECTORY}. It finds the DAG with AIRFLOW__CORE__DAGS_FOLDER=${HERE}/dags."
