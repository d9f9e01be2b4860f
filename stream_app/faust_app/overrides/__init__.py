"""Every subclass and private name of Faust, aiokafka and kafka-python that we rely on."""
