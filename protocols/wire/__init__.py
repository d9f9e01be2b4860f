"""Bytes on the wire: frames, single reports and clock records, and the reasons for refusing them."""

from protocols.wire.clock import Clock, decode_clock, encode_clock, last_due, time_fault
from protocols.wire.content import (
    CLOCK,
    CONTENT_TYPE_HEADER,
    FRAME,
    MAX_RECORD_BYTES,
    MAX_ROWS,
    MAX_TERMS_BYTES,
    REPORT,
    TERMS,
    Reason,
    Reject,
    partition_of,
)
from protocols.wire.frame import ROW_REASONS, Frame, decode_frame, encode_frame, join_frames, most_rows, row_faults
from protocols.wire.header import Lookup, ReportHeader, named, read_json
from protocols.wire.report import ReportRow, decode_report, read_report, row_of, rows_frame
from protocols.wire.trial import collectable, try_reports
