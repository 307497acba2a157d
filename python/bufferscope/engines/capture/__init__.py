"""Captures of packets that others carried, as `bufferscope inspect` stores them."""

from bufferscope.engines.engine import Engine

ENGINE = Engine("capture", "captured packets", read_by="bufferscope inspect", names_ends=False)
