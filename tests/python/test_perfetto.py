"""The Perfetto export, decoded with Perfetto's published schema."""

import pathlib
import shutil
import subprocess
import zlib
from collections import defaultdict

import pytest
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


PROGRAM = """
#include <pthread.h>
#include "horolog/trace.h"
static void *answer(void *request)
{
	HOROLOG_SPAN_BEGIN("answer", HOROLOG_FLOW_END((unsigned long)request));
	HOROLOG_SPAN_END("answer");
	return 0;
}
int main(void)
{
	for (int i = 0; i < 2000; i++)
		HOROLOG_TRIGGER("net/packet", HOROLOG_ARG("length", "B", i), HOROLOG_ARG("port", "", 80 + i % 3));
	HOROLOG_SPAN_BEGIN("ask", HOROLOG_FLOW(7), HOROLOG_STRING("who"));
	HOROLOG_COUNTER("queue/length", "items", 5);
	HOROLOG_SPAN_END("ask");
	pthread_t thread;
	pthread_create(&thread, 0, answer, (void *)7);
	pthread_join(thread, 0);
	return 0;
}
"""


@pytest.fixture(scope="module")
def recorded(horolog, tmp_path_factory) -> pathlib.Path:
    """A recording of PROGRAM."""
    folder = tmp_path_factory.mktemp("recorded")
    source, program, out = folder / "program.c", folder / "program", folder / "program.hrt"
    source.write_text(PROGRAM)
    include = pathlib.Path(__file__).parents[2] / "front/tracer/include"
    if shutil.which("gcc") is None:
        pytest.skip("no gcc")
    subprocess.run(["gcc", "-O2", "-pthread", "-I", include, "-o", program, source], check=True)
    ended = subprocess.run(
        [horolog, "trace", "record", "--out", out, "--", program], capture_output=True, text=True, check=False
    )
    if ended.returncode == 3:
        pytest.skip(ended.stderr)
    assert ended.returncode == 0, ended.stderr
    return out


def packets(horolog, recorded: pathlib.Path, to: str) -> tuple[list, int]:
    """Every packet, those in compressed ones too, and the bytes of the file."""
    out = recorded.with_suffix(f".{to}.pftrace")
    subprocess.run([horolog, "trace", "convert", recorded, out, "--to", to], check=True, capture_output=True)
    trace = Trace()
    trace.ParseFromString(out.read_bytes())
    found = []
    for packet in trace.packet:
        if packet.HasField("compressed_packets"):
            inner = Trace()
            inner.ParseFromString(zlib.decompress(packet.compressed_packets))
            found += inner.packet
        else:
            found.append(packet)
    return found, len(out.read_bytes())


def resolved(found: list) -> list[tuple[int, int, str, dict, object]]:
    """Time, track, name and arguments of each event, as the documentation of interned data and of clocks says."""
    sequences, events = defaultdict(lambda: {"names": {}, "arguments": {}, "track": 0, "time": 0}), []
    for packet in found:
        sequence = sequences[packet.trusted_packet_sequence_id]
        if packet.HasField("trace_packet_defaults"):
            sequence["track"] = packet.trace_packet_defaults.track_event_defaults.track_uuid
            assert packet.trace_packet_defaults.timestamp_clock_id == 64
        for clock in packet.clock_snapshot.clocks:
            if clock.clock_id == 64:
                assert clock.is_incremental
                sequence["time"] = clock.timestamp
        sequence["names"] |= {name.iid: name.name for name in packet.interned_data.event_names}
        sequence["arguments"] |= {name.iid: name.name for name in packet.interned_data.debug_annotation_names}
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        if sequence["track"]:
            sequence["time"] += packet.timestamp
        arguments = {
            sequence["arguments"][argument.name_iid]: getattr(argument, argument.WhichOneof("value"))
            for argument in event.debug_annotations
        }
        name = sequence["names"].get(event.name_iid, event.name)
        events.append((sequence["time"], event.track_uuid or sequence["track"], name, arguments, event))
    return events


@pytest.mark.parametrize(("to", "most"), [("perfetto", 32), ("perfetto-compressed", 12)])
def test_events_of_programs_read_back_and_are_short(horolog, recorded, to, most):
    found, size = packets(horolog, recorded, to)
    assert all(packet == type(packet).FromString(packet.SerializeToString()) for packet in found)
    events = resolved(found)
    sent = [(arguments["length [B]"], arguments["port"]) for _, _, name, arguments, _ in events if name == "net/packet"]
    assert sent == [(i, 80 + i % 3) for i in range(2000)]
    times = [time for time, _, name, _, _ in events if name == "net/packet"]
    assert times == sorted(times) and 0 < times[-1] - times[0] < 10**10
    ask = next(event for _, _, name, _, event in events if name == "ask")
    answer = next(event for _, _, name, _, event in events if name == "answer")
    assert (list(ask.flow_ids), list(answer.terminating_flow_ids)) == ([7], [7])
    assert next(arguments for _, _, name, arguments, _ in events if name == "ask")["argument 1"] == "who"
    counter = next(event for *_, event in events if event.type == TrackEvent.TYPE_COUNTER and event.counter_value == 5)
    track = next(p.track_descriptor for p in found if p.track_descriptor.uuid == counter.track_uuid)
    assert (track.name, track.counter.unit_name) == ("queue/length", "items")
    assert size / 2000 <= most, f"{size / 2000} bytes an event"
    print(f"{to}: {size / 2000:.1f} bytes an event of two arguments")
