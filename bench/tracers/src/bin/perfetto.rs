//! The Perfetto SDK, in-process, two integer arguments an event; the trace is read back and its events counted.

use perfetto_sdk::heap_buffer::HeapBuffer;
use perfetto_sdk::pb_decoder::{PbDecoder, PbDecoderField};
use perfetto_sdk::pb_msg::{PbMsg, PbMsgWriter};
use perfetto_sdk::producer::{Backends, Producer, ProducerInitArgsBuilder};
use perfetto_sdk::protos::config::data_source_config::DataSourceConfig;
use perfetto_sdk::protos::config::trace_config::{
    TraceConfig, TraceConfigBufferConfig, TraceConfigDataSource,
};
use perfetto_sdk::protos::config::track_event::track_event_config::TrackEventConfig;
use perfetto_sdk::track_event::{EventContext, TrackEvent, TrackEventDebugArg};
use perfetto_sdk::tracing_session::TracingSession;
use perfetto_sdk::{track_event_categories, track_event_instant};
use std::error::Error;
use std::sync::{Arc, Mutex};
use tracers::{argument, rounds};

/// Big enough for every event of a run.
const BUFFER_KB: u32 = 1024 * 1024;
/// `Trace.packet`, `TracePacket.track_event`.
const PACKET: u32 = 1;
const TRACK_EVENT: u32 = 11;

track_event_categories! {
    pub mod bench_te_ns {
        ( "bench", "bench", [] ),
    }
}
use bench_te_ns as perfetto_te_ns;

fn configuration() -> Result<Vec<u8>, Box<dyn Error>> {
    let writer = PbMsgWriter::new();
    let heap = HeapBuffer::new(writer.stream_writer());
    let mut message = PbMsg::new(&writer).map_err(|_| "no message")?;
    let mut configuration = TraceConfig { msg: &mut message };
    configuration.set_buffers(|buffer: &mut TraceConfigBufferConfig| {
        buffer.set_size_kb(BUFFER_KB);
    });
    configuration.set_data_sources(|sources: &mut TraceConfigDataSource| {
        sources.set_config(|source: &mut DataSourceConfig| {
            source.set_name("track_event");
            source.set_track_event_config(|events: &mut TrackEventConfig| {
                events.set_enabled_categories("bench");
            });
        });
    });
    message.finalize();
    let mut bytes = vec![0; writer.stream_writer().get_written_size()];
    heap.copy_into(&mut bytes);
    Ok(bytes)
}

/// How many track events a serialised trace holds.
fn count(trace: &[u8]) -> u64 {
    let is_event = |packet: &[u8]| PbDecoder::new(packet).flatten().any(|(id, _)| id == TRACK_EVENT);
    let packets = PbDecoder::new(trace).flatten();
    packets.filter(|(id, field)| *id == PACKET && matches!(field, PbDecoderField::Delimited(bytes) if is_event(bytes))).count() as u64
}

fn one(i: u64) {
    track_event_instant!("bench", "event", |context: &mut EventContext| {
        context.add_debug_arg("a", TrackEventDebugArg::Uint64(i));
        context.add_debug_arg("b", TrackEventDebugArg::Uint64(i + 1));
    });
}

fn main() -> Result<(), Box<dyn Error>> {
    let (repeats, events) = (argument(1, 5) as u32, argument(2, 1_000_000));
    Producer::init(ProducerInitArgsBuilder::new().backends(Backends::IN_PROCESS).shmem_size_hint_kb(32 * 1024).build());
    TrackEvent::init();
    perfetto_te_ns::register()?;
    rounds("perfetto-sdk", "off", repeats, events, one);
    let mut session = TracingSession::in_process()?;
    session.setup(&configuration()?);
    session.start_blocking();
    rounds("perfetto-sdk", "on", repeats, events, one);
    session.stop_blocking();
    let trace = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&trace);
    session.read_trace_blocking(move |data, _| {
        if let Ok(mut bytes) = into.lock() {
            bytes.extend_from_slice(data);
        }
    });
    let seen = trace.lock().map(|bytes| count(&bytes)).unwrap_or(0);
    let emitted = events * u64::from(repeats);
    println!("perfetto-sdk lost {}", emitted.saturating_sub(seen));
    println!("perfetto-sdk ring in-process buffer of {} MiB", BUFFER_KB / 1024);
    Ok(())
}
