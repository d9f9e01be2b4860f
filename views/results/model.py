"""What all models of results have in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Pieces = Annotated[
    tuple[str, ...],
    Field(description="of a result too large for one record: digests of the pieces that have its empty columns"),
]


class ResultModel(BaseModel):
    """Frozen, and without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")
