"""Bytes on the wire: frames, single reports and clock records, and the reasons for refusing them."""

from protocols.wire.clock import Clock, decode_clock, encode_clock
from protocols.wire.content import CLOCK, CONTENT_TYPE_HEADER, FRAME, MAX_RECORD_BYTES, MAX_ROWS, REPORT, partition_of
from protocols.wire.frame import Frame, decode_frame, encode_frame, join_frames
from protocols.wire.header import Lookup
from protocols.wire.naming import Named, named
from protocols.wire.reasons import Reason, Reject
from protocols.wire.report import decode_report, encode_report
from protocols.wire.rows import ROW_REASONS, row_faults
from protocols.wire.terms import MAX_TERMS_BYTES, TERMS, decode_terms

__all__ = [
    "CLOCK",
    "CONTENT_TYPE_HEADER",
    "FRAME",
    "MAX_RECORD_BYTES",
    "MAX_ROWS",
    "MAX_TERMS_BYTES",
    "REPORT",
    "ROW_REASONS",
    "TERMS",
    "Clock",
    "Frame",
    "Lookup",
    "Named",
    "Reason",
    "Reject",
    "decode_clock",
    "decode_frame",
    "decode_report",
    "decode_terms",
    "encode_clock",
    "encode_frame",
    "encode_report",
    "join_frames",
    "named",
    "partition_of",
    "row_faults",
]
