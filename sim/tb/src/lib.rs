//! Test bench: AXI agents, hostile memory, scoreboards, replay
