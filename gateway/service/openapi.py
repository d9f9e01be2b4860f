"""The OpenAPI description of a gateway, also in docs/schemas/gateway.json."""

from __future__ import annotations

from typing import Any

from protocols.wire import FRAME, REPORT, TERMS, Reason

HEX = "lower-case hexadecimal digits"


def _hex(digits: int, what: str) -> dict[str, Any]:
    return {"type": "string", "pattern": f"^[0-9a-f]{{{digits}}}$", "description": f"{what}: {digits} {HEX}"}


def _json(schema: str, what: str) -> dict[str, Any]:
    return {
        "description": what,
        "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}},
    }


REFUSED = {
    "400": _json("Refusal", "not HTTP as the gateway reads it"),
    "401": _json("Refusal", "a credential is needed"),
    "403": _json("Refusal", "not from here, not from this page, or not with this credential"),
    "408": _json("Refusal", "the request did not arrive in time"),
    "413": _json("Refusal", "the body is too large"),
    "415": _json("Refusal", "not a content type that is taken, or compressed"),
    "422": _json("Refusal", "refused, with the reason; the same codes as those of dead letters"),
    "429": _json("Refusal", "the credential sends too often; the header Retry-After says for how long to wait"),
    "503": _json("Refusal", "send the same again later; the header Retry-After says when"),
}


def openapi() -> dict[str, Any]:
    """The description, as OpenAPI 3.1."""
    body = {"$ref": "#/components/schemas/Report"}
    lines = {"schema": {"type": "string", "description": "a report on each line"}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "hearsay gateway",
            "version": "1",
            "description": "Takes noisy reports of devices. What a device must do is in device-protocol.md.",
        },
        "paths": {
            "/v1/surveys": {"get": {"summary": "all surveys", "responses": {"200": _json("Surveys", "the surveys")}}},
            "/v1/surveys/{id}": {
                "get": {
                    "summary": "the terms of a survey; their bytes are what its fingerprint is computed from",
                    "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
                    "responses": {
                        "200": {
                            "description": "the terms; hearsay-signature is their author's signature, if there is one",
                            "headers": {"hearsay-signature": {"schema": {"type": "string"}}},
                            "content": {TERMS: {"schema": {"type": "object"}}},
                        },
                        "304": {"description": "the terms are those of If-None-Match"},
                        "404": _json("Refusal", "no such survey"),
                    },
                }
            },
            "/v1/reports": {
                "post": {
                    "summary": "one report; from edges also a JSON array of reports, or lines of JSON",
                    "security": [{}, {"bearer": []}, {"certificate": []}],
                    "requestBody": {
                        "required": True,
                        "content": {
                            REPORT: {"schema": body},
                            "application/json": {"schema": {"oneOf": [body, {"type": "array", "items": body}]}},
                            "application/x-ndjson": lines,
                        },
                    },
                    "responses": {
                        "200": _json("Results", "of several reports some were refused"),
                        "201": _json("Results", "in the log: counted, once"),
                        "202": _json("Results", "durable in the gateway, and counted later"),
                        **REFUSED,
                    },
                }
            },
            "/v1/frames": {
                "post": {
                    "summary": "many reports of one survey and period as an Arrow frame; from edges",
                    "security": [{}, {"bearer": []}, {"certificate": []}],
                    "requestBody": {
                        "required": True,
                        "content": {FRAME: {"schema": {"type": "string", "format": "binary"}}},
                    },
                    "responses": {
                        "200": _json("Rows", "some rows were refused"),
                        "201": _json("Rows", "in the log: counted, once"),
                        "202": _json("Rows", "durable in the gateway, and counted later"),
                        **REFUSED,
                    },
                }
            },
            "/v1/openapi.json": {
                "get": {"summary": "this description", "responses": {"200": {"description": "OpenAPI 3.1"}}}
            },
            "/live": {"get": {"summary": "whether it lives", "responses": _states("live")}},
            "/ready": {"get": {"summary": "whether it takes reports", "responses": _states("ready")}},
            "/metrics": {
                "get": {
                    "summary": "metrics for Prometheus; on the loopback address only",
                    "responses": {"200": {"description": "the metrics", "content": {"text/plain": {}}}},
                }
            },
        },
        "components": {"schemas": _schemas(), "securitySchemes": _security()},
    }


def _states(name: str) -> dict[str, Any]:
    return {"200": {"description": name}, "503": {"description": f"not {name}"}}


def _schemas() -> dict[str, Any]:
    text = {"type": "string"}
    report = {
        "survey": text,
        "fingerprint": _hex(32, "of the survey's terms"),
        "period": _hex(8, "the period, counted from the survey's start"),
        "token": _hex(16, "the same for every attempt at this period, different in every period"),
        "gap": _hex(4, "periods since the last report"),
        "answers": {"type": "object", "additionalProperties": text, "description": "an answer for each attribute"},
    }
    result = {"type": "object", "properties": {"status": {"enum": ["taken", "held", "refused"]}, "reason": text}}
    listed = {"type": "object", "properties": {"id": text, "title": text, "fingerprint": text}}
    return {
        "Report": {
            "type": "object",
            "properties": report,
            "required": list(report),
            "additionalProperties": False,
        },
        "Surveys": {"type": "object", "properties": {"surveys": {"type": "array", "items": listed}}},
        "Results": {
            "description": "of one report its status, of several a result for each, in order",
            "oneOf": [result, {"type": "object", "properties": {"results": {"type": "array", "items": result}}}],
        },
        "Rows": {
            "type": "object",
            "properties": {
                "taken": {"type": "integer"},
                "refused": {
                    "type": "object",
                    "description": "the places of refused rows in the frame, by reason",
                    "additionalProperties": {"type": "array", "items": {"type": "integer"}},
                },
            },
        },
        "Refusal": {
            "type": "object",
            "properties": {
                "reason": {
                    "type": "string",
                    "description": "of reports one of " + ", ".join(reason.value for reason in Reason),
                },
                "detail": {"type": "string", "description": "the reason in words"},
            },
            "required": ["reason", "detail"],
        },
    }


def _security() -> dict[str, Any]:
    return {
        "bearer": {"type": "http", "scheme": "bearer", "description": "made by `hearsay gateway token new`"},
        "certificate": {"type": "mutualTLS", "description": "a client certificate of the gateway's authority"},
    }
