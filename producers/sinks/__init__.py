"""Where frames go: Kafka, a directory to send later, or anything in this process that can count them."""
