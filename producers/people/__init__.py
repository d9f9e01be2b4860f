"""People from aggregates: who comes on which days, and with which values, so that published counts come out."""

from producers.people.fitting import Windows, fit
from producers.people.flows import Flows, beyond, deal, flows_of, rejoined, unique_people, whole
from producers.people.splitting import ABSENT, ByValue, combinations, handed, proportional, shuffled, split
