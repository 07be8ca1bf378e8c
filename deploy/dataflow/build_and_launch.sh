#!/usr/bin/env bash
# Builds the image, makes the Flex Template, and launches a build on Dataflow.
#
#   PROJECT=my-project REGION=europe-west4 BUCKET=my-bucket deploy/dataflow/build_and_launch.sh \
#     output=gs://my-bucket/enwiki,extract_input=gs://my-bucket/enwiki-pages-articles-multistream.xml.bz2,\
# examples_vocab_file=gs://my-bucket/vocab.txt
#
# The argument gives the template's parameters, which metadata.json lists. Docker and gcloud must be installed and logged in.
set -euo pipefail

: "${PROJECT:?name the Google Cloud project}" "${REGION:?name the region}" "${BUCKET:?name the bucket for templates}"
REPOSITORY=${REPOSITORY:-maskmill}
TAG=${TAG:-$(git rev-parse --short HEAD)}
IMAGE=${REGION}-docker.pkg.dev/${PROJECT}/${REPOSITORY}/maskmill:${TAG}
TEMPLATE=gs://${BUCKET}/templates/maskmill-${TAG}.json
# README.md explains these sizes.
MACHINE=${MACHINE:-n2-standard-4}
MAX_WORKERS=${MAX_WORKERS:-32}
DISK_GB=${DISK_GB:-30}

cd "$(dirname "$0")/../.."

docker build --platform linux/amd64 --file deploy/dataflow/Dockerfile --build-arg "IMAGE=${IMAGE}" --tag "${IMAGE}" .
docker push "${IMAGE}"

gcloud dataflow flex-template build "${TEMPLATE}" \
  --project "${PROJECT}" --image "${IMAGE}" --sdk-language PYTHON --metadata-file deploy/dataflow/metadata.json

if [ $# -eq 0 ]; then
  echo "The template is ${TEMPLATE}; give its parameters to launch it."
  exit 0
fi

gcloud dataflow flex-template run "maskmill-$(date -u +%Y%m%d-%H%M%S)" \
  --project "${PROJECT}" --region "${REGION}" --template-file-gcs-location "${TEMPLATE}" \
  --staging-location "gs://${BUCKET}/staging" --temp-location "gs://${BUCKET}/tmp" \
  --worker-machine-type "${MACHINE}" --max-workers "${MAX_WORKERS}" \
  --additional-pipeline-options "disk_size_gb=${DISK_GB}" \
  --parameters "$1"
