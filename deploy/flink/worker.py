"""A Python worker that Flink starts as a process: Beam's container contract, without a container.

Beam's own start program is made for images: it installs what a job staged. Here the workers' Python is the one that
maskmill is installed in, so this only hands over what the TaskManager says and becomes Beam's SDK harness.
"""

import argparse
import os
import sys
from pathlib import Path

import grpc
from apache_beam.portability.api import beam_provision_api_pb2, beam_provision_api_pb2_grpc
from apache_beam.runners.worker import sdk_worker_main
from google.protobuf import json_format, text_format

# This file lies in a checkout: where maskmill is not installed, it is there.
sys.path.append(str(Path(__file__).resolve().parents[2]))

# A Python without it fails here and at once, not after minutes of waiting for a client that cannot answer.
from maskmill.command import foreign_package


def provision(worker_id: str, endpoint: str) -> beam_provision_api_pb2.ProvisionInfo:
    """What the TaskManager says of the job and of its other services."""
    with grpc.insecure_channel(endpoint) as channel:
        stub = beam_provision_api_pb2_grpc.ProvisionServiceStub(grpc.intercept_channel(channel, _WorkerId(worker_id)))
        return stub.GetProvisionInfo(beam_provision_api_pb2.GetProvisionInfoRequest()).info


class _WorkerId(grpc.UnaryUnaryClientInterceptor):
    """Names the worker in a call's metadata, as the service demands."""

    def __init__(self, worker_id: str) -> None:
        self._metadata = (("worker_id", worker_id),)

    def intercept_unary_unary(self, continuation, details, request):  # type: ignore[no-untyped-def]
        return continuation(details._replace(metadata=self._metadata), request)


def main() -> None:
    """Reads the contract's flags and runs the harness to its end."""
    if (sentence := foreign_package()) is not None:
        sys.exit(f"maskmill: {sentence}")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--id", required=True)
    parser.add_argument("--provision_endpoint", required=True)
    # Older runners name these here too; all name them in what the provision service gives.
    given, _ = parser.parse_known_args()
    info = provision(given.id, given.provision_endpoint)
    os.environ |= {
        "WORKER_ID": given.id,
        "LOGGING_API_SERVICE_DESCRIPTOR": text_format.MessageToString(info.logging_endpoint),
        "CONTROL_API_SERVICE_DESCRIPTOR": text_format.MessageToString(info.control_endpoint),
        "PIPELINE_OPTIONS": json_format.MessageToJson(info.pipeline_options),
        "RUNNER_CAPABILITIES": " ".join(info.runner_capabilities),
    }
    sdk_worker_main.main(sys.argv)


if __name__ == "__main__":
    main()
