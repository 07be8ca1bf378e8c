"""The Python worker that a TaskManager starts as a process. It follows Beam's container contract without a container.

Beam's own start program is made for container images and installs the packages that a job staged. This worker runs in
the Python in which maskmill is installed, so it only reads the job's settings from the TaskManager and starts Beam's
SDK harness.
"""

import argparse
import os
import sys
from pathlib import Path

import grpc
from apache_beam.portability.api import beam_provision_api_pb2, beam_provision_api_pb2_grpc
from apache_beam.runners.worker import sdk_worker_main
from google.protobuf import json_format, text_format

# This file is part of a checkout. A Python in which maskmill is not installed finds it there.
sys.path.append(str(Path(__file__).resolve().parents[2]))

# A Python that does not find maskmill fails here at once. Else it would wait minutes for a client that cannot answer.
from maskmill.command import foreign_package


def provision(worker_id: str, endpoint: str) -> beam_provision_api_pb2.ProvisionInfo:
    """Return the TaskManager's answer about the job: its options, and the addresses of its services."""
    with grpc.insecure_channel(endpoint) as channel:
        stub = beam_provision_api_pb2_grpc.ProvisionServiceStub(grpc.intercept_channel(channel, _WorkerId(worker_id)))
        return stub.GetProvisionInfo(beam_provision_api_pb2.GetProvisionInfoRequest()).info


class _WorkerId(grpc.UnaryUnaryClientInterceptor):
    """Adds the worker's name to a call's metadata, because the service requires it."""

    def __init__(self, worker_id: str) -> None:
        self._metadata = (("worker_id", worker_id),)

    def intercept_unary_unary(self, continuation, details, request):  # type: ignore[no-untyped-def]
        return continuation(details._replace(metadata=self._metadata), request)


def main() -> None:
    """Read the flags of the container contract and run the harness to its end."""
    if (sentence := foreign_package()) is not None:
        sys.exit(f"maskmill: {sentence}")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--id", required=True)
    parser.add_argument("--provision_endpoint", required=True)
    # Older runners also pass the addresses of the services as flags; every runner gives them in the provision service.
    flags, _ = parser.parse_known_args()
    info = provision(flags.id, flags.provision_endpoint)
    os.environ |= {
        "WORKER_ID": flags.id,
        "LOGGING_API_SERVICE_DESCRIPTOR": text_format.MessageToString(info.logging_endpoint),
        "CONTROL_API_SERVICE_DESCRIPTOR": text_format.MessageToString(info.control_endpoint),
        "PIPELINE_OPTIONS": json_format.MessageToJson(info.pipeline_options),
        "RUNNER_CAPABILITIES": " ".join(info.runner_capabilities),
    }
    sdk_worker_main.main(sys.argv)


if __name__ == "__main__":
    main()
