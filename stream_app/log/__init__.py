"""What counting and merging share: reading a log in order, state records, and ordered flushes."""

from stream_app.log.codec import RECORD_BYTES, VALUE_BYTES, compress, decompress
from stream_app.log.flushes import FINALS, OPEN, RESULTS, Come, Output, ResultTopic, TopicName
from stream_app.log.marks import Loss
