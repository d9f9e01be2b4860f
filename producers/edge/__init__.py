"""The edge: files of events that are dropped into a directory become reports, exactly once, on a trusted machine."""

from producers.edge.declaration import EdgeDeclaration, parse_edge
from producers.edge.directory import DirectoryEdge
from producers.edge.state import EdgeState
