"""Prints the OpenAPI description: `python -m gateway.service > docs/schemas/gateway.json`."""

import json
import sys

from gateway.service.openapi import openapi

sys.stdout.write(json.dumps(openapi(), indent=2) + "\n")
