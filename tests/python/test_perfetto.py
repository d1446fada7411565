"""The Perfetto export, decoded with Perfetto's published schema."""

from collections import defaultdict

from conftest import HIGH, LOW
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent


def decoded(converted) -> Trace:
    trace = Trace()
    trace.ParseFromString(converted("sim.pftrace").read_bytes())
    return trace


def tracks(trace: Trace) -> dict[int, str]:
    return {p.track_descriptor.uuid: p.track_descriptor.name for p in trace.packet if p.HasField("track_descriptor")}


def slices(trace: Trace) -> dict[str, list[tuple[int, int]]]:
    """Per track's name, begin and end of each slice."""
    names, begun, found = tracks(trace), defaultdict(list), defaultdict(list)
    for packet in trace.packet:
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            begun[event.track_uuid].append(packet.timestamp)
        elif event.type == TrackEvent.TYPE_SLICE_END:
            found[names[event.track_uuid]].append((begun[event.track_uuid].pop(), packet.timestamp))
    assert not any(begun.values()), "a slice that begins ends"
    return found


def test_no_field_is_unknown_to_the_published_schema(converted):
    trace = decoded(converted)
    copy = Trace()
    copy.CopyFrom(trace)
    copy.DiscardUnknownFields()
    assert copy.SerializeToString() == trace.SerializeToString()
    assert len(trace.packet) > 10


def test_every_event_stands_on_a_named_track(converted):
    trace = decoded(converted)
    names = tracks(trace)
    assert {"high", "low", "CPU 0", "lost records"} <= set(names.values())
    for packet in trace.packet:
        if packet.HasField("track_event"):
            assert packet.track_event.track_uuid in names
            assert packet.trusted_packet_sequence_id == 1
    parents = {p.track_descriptor.parent_uuid for p in trace.packet if p.HasField("track_descriptor")}
    assert parents - {0} <= set(names)


def test_slices_are_when_the_jobs_ran(converted):
    found = slices(decoded(converted))
    assert found["high"] == HIGH
    assert found["low"] == LOW
    assert sorted(found["CPU 0"]) == sorted(HIGH + LOW)


def test_releases_are_instants(converted):
    trace = decoded(converted)
    names = tracks(trace)
    releases = [
        (packet.timestamp, names[packet.track_event.track_uuid])
        for packet in trace.packet
        if packet.HasField("track_event") and packet.track_event.name == "release"
    ]
    assert releases == [(0, "high"), (0, "low"), (10_000_000, "high")]
