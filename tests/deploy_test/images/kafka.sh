# Starts a broker whose settings are the variables KAFKA_*: KAFKA_NODE_ID is node.id.
set -eu
properties=/tmp/server.properties
env | sed -n 's/^KAFKA_//p' | while IFS= read -r pair; do
  printf '%s=%s\n' "$(printf %s "${pair%%=*}" | tr 'A-Z_' 'a-z.')" "${pair#*=}"
done >"$properties"

run() { java -Xmx512m -Dlog4j2.configurationFile=/opt/kafka/log4j2.xml -cp '/opt/kafka/libs/*' "$@"; }
run kafka.tools.StorageTool format --ignore-formatted --cluster-id=5L6g3nShT-eMCtK--X86sw -c "$properties"
exec java -Xmx512m -Dlog4j2.configurationFile=/opt/kafka/log4j2.xml -cp '/opt/kafka/libs/*' kafka.Kafka "$properties"
