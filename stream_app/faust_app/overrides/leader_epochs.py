"""kafka-python's admin client, which also asks where leader epochs ended: no client has a method for that."""

from collections import defaultdict
from collections.abc import Mapping

from kafka import KafkaAdminClient, TopicPartition
from kafka.errors import for_code
from kafka.protocol.consumer import OffsetForLeaderEpochRequest

ANY = -1
"""Not a replica; and whatever the leader's own epoch is."""
_Topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic


class EpochAdmin(KafkaAdminClient):  # type: ignore[misc]
    """An admin client that knows `epoch_ends`."""

    def epoch_ends(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The offset at which a leader epoch ended in each partition: its end, if that is the present epoch.

        Epochs that the leader does not know are left out.
        """
        ends: dict[TopicPartition, int] = self._manager.run(self._epoch_ends, epochs) if epochs else {}
        return ends

    async def _epoch_ends(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        ends = {}
        leaders = await self._async_get_leader_for_partitions(set(epochs))
        for leader, partitions in leaders.items():
            asked = defaultdict(list)
            for tp in partitions:
                asked[tp.topic].append(
                    _Topic.OffsetForLeaderPartition(
                        partition=tp.partition, current_leader_epoch=ANY, leader_epoch=epochs[tp]
                    )
                )
            topics = [_Topic(topic=topic, partitions=listed) for topic, listed in asked.items()]
            request = OffsetForLeaderEpochRequest(replica_id=ANY, topics=topics)
            response = await self._manager.send(request, node_id=leader)
            for topic in response.topics:
                for found in topic.partitions:
                    if found.error_code:
                        raise for_code(found.error_code)(f"{topic.topic} {found.partition}")
                    if found.end_offset >= 0:
                        ends[TopicPartition(topic.topic, found.partition)] = found.end_offset
        return ends
