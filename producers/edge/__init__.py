"""The edge: events become reports as they come, exactly once, on a trusted machine."""

from producers.edge.declaration import EdgeDeclaration, open_edge, parse_edge
from producers.edge.directory import DirectoryEdge, EdgeState
