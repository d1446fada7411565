//! The part of Perfetto's published protobuf schema that is written here, with its field numbers
//! (`protos/perfetto/trace/trace_packet.proto` and what it imports).

/// `perfetto.protos.Trace`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Trace {
    /// All packets.
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

/// `perfetto.protos.TracePacket`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct TracePacket {
    /// What clocks said at one moment.
    #[prost(message, optional, tag = "6")]
    pub clock_snapshot: Option<ClockSnapshot>,
    /// Nanoseconds on the trace's clock, or on the one that the sequence or the packet names.
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// Who writes: packets of one sequence are in order.
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    /// An event.
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEvent>,
    /// Texts that later packets of the sequence name by number.
    #[prost(message, optional, tag = "12")]
    pub interned_data: Option<InternedData>,
    /// 1: incremental state is cleared; 2: it is needed.
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    /// Packets, one behind the other as in a `Trace`, as a zlib stream.
    #[prost(bytes = "vec", optional, tag = "50")]
    pub compressed_packets: Option<Vec<u8>>,
    /// The clock of the timestamp.
    #[prost(uint32, optional, tag = "58")]
    pub timestamp_clock_id: Option<u32>,
    /// What later packets of the sequence leave out.
    #[prost(message, optional, tag = "59")]
    pub trace_packet_defaults: Option<TracePacketDefaults>,
    /// A track.
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<TrackDescriptor>,
}

/// `perfetto.protos.ClockSnapshot`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ClockSnapshot {
    /// The clocks.
    #[prost(message, repeated, tag = "1")]
    pub clocks: Vec<Clock>,
}

/// `perfetto.protos.ClockSnapshot.Clock`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Clock {
    /// Which one; from 64 to 127 one of the sequence alone.
    #[prost(uint32, optional, tag = "1")]
    pub clock_id: Option<u32>,
    /// What it said.
    #[prost(uint64, optional, tag = "2")]
    pub timestamp: Option<u64>,
    /// Whether a timestamp is the difference to the sequence's previous one.
    #[prost(bool, optional, tag = "3")]
    pub is_incremental: Option<bool>,
}

/// `perfetto.protos.InternedData`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct InternedData {
    /// Names of events.
    #[prost(message, repeated, tag = "2")]
    pub event_names: Vec<Interned>,
    /// Names of debug annotations.
    #[prost(message, repeated, tag = "3")]
    pub debug_annotation_names: Vec<Interned>,
}

/// `perfetto.protos.EventName` and `perfetto.protos.DebugAnnotationName`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Interned {
    /// Its number in the sequence, from 1.
    #[prost(uint64, optional, tag = "1")]
    pub iid: Option<u64>,
    /// The text.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
}

/// `perfetto.protos.TracePacketDefaults`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct TracePacketDefaults {
    /// Of events.
    #[prost(message, optional, tag = "11")]
    pub track_event_defaults: Option<TrackEventDefaults>,
    /// The clock of timestamps.
    #[prost(uint32, optional, tag = "58")]
    pub timestamp_clock_id: Option<u32>,
}

/// `perfetto.protos.TrackEventDefaults`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct TrackEventDefaults {
    /// Their track.
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
}

/// `perfetto.protos.TrackDescriptor`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct TrackDescriptor {
    /// Its number.
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    /// Its name.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    /// Whose child it is.
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    /// Present where it stands for a process.
    #[prost(message, optional, tag = "3")]
    pub process: Option<ProcessDescriptor>,
    /// Present where it stands for a thread.
    #[prost(message, optional, tag = "4")]
    pub thread: Option<ThreadDescriptor>,
    /// Present where it is a counter.
    #[prost(message, optional, tag = "8")]
    pub counter: Option<CounterDescriptor>,
    /// 3: children are ordered by their rank.
    #[prost(int32, optional, tag = "11")]
    pub child_ordering: Option<i32>,
    /// Its rank among siblings.
    #[prost(int32, optional, tag = "12")]
    pub sibling_order_rank: Option<i32>,
}

/// `perfetto.protos.ProcessDescriptor`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ProcessDescriptor {
    /// The kernel's number of it.
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// Its name.
    #[prost(string, optional, tag = "6")]
    pub process_name: Option<String>,
}

/// `perfetto.protos.ThreadDescriptor`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ThreadDescriptor {
    /// Its process.
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// The kernel's number of it.
    #[prost(int32, optional, tag = "2")]
    pub tid: Option<i32>,
    /// Its name.
    #[prost(string, optional, tag = "5")]
    pub thread_name: Option<String>,
}

/// `perfetto.protos.CounterDescriptor`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CounterDescriptor {
    /// What is counted.
    #[prost(string, optional, tag = "6")]
    pub unit_name: Option<String>,
}

/// `perfetto.protos.TrackEvent`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct TrackEvent {
    /// Numbers that belong to it.
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    /// Its name, by number.
    #[prost(uint64, optional, tag = "10")]
    pub name_iid: Option<u64>,
    /// [`SLICE_BEGIN`], [`SLICE_END`], [`INSTANT`] or [`COUNTER`].
    #[prost(int32, optional, tag = "9")]
    pub r#type: Option<i32>,
    /// On which track.
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    /// What sort of event.
    #[prost(string, repeated, tag = "22")]
    pub categories: Vec<String>,
    /// Its name.
    #[prost(string, optional, tag = "23")]
    pub name: Option<String>,
    /// A counter's new value.
    #[prost(int64, optional, tag = "30")]
    pub counter_value: Option<i64>,
    /// The same, where it is no integer.
    #[prost(double, optional, tag = "44")]
    pub double_counter_value: Option<f64>,
    /// The flows that it is a part of.
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub flow_ids: Vec<u64>,
    /// The flows that end with it.
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub terminating_flow_ids: Vec<u64>,
}

/// `perfetto.protos.DebugAnnotation`.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DebugAnnotation {
    /// Its name, by number.
    #[prost(uint64, optional, tag = "1")]
    pub name_iid: Option<u64>,
    /// Its name.
    #[prost(string, optional, tag = "10")]
    pub name: Option<String>,
    /// Its value, of a bool.
    #[prost(bool, optional, tag = "2")]
    pub bool_value: Option<bool>,
    /// Its value, of an unsigned number.
    #[prost(uint64, optional, tag = "3")]
    pub uint_value: Option<u64>,
    /// Its value, of a signed number.
    #[prost(int64, optional, tag = "4")]
    pub int_value: Option<i64>,
    /// Its value, of a double.
    #[prost(double, optional, tag = "5")]
    pub double_value: Option<f64>,
    /// Its value, of a text.
    #[prost(string, optional, tag = "6")]
    pub string_value: Option<String>,
    /// Its value, of an address.
    #[prost(uint64, optional, tag = "7")]
    pub pointer_value: Option<u64>,
}

/// `TrackEvent.Type.TYPE_SLICE_BEGIN`.
pub const SLICE_BEGIN: i32 = 1;
/// `TrackEvent.Type.TYPE_SLICE_END`.
pub const SLICE_END: i32 = 2;
/// `TrackEvent.Type.TYPE_INSTANT`.
pub const INSTANT: i32 = 3;
/// `TrackEvent.Type.TYPE_COUNTER`.
pub const COUNTER: i32 = 4;
/// `TrackDescriptor.ChildTracksOrdering.EXPLICIT`.
pub const EXPLICIT_ORDER: i32 = 3;
/// `TracePacket.SequenceFlags.SEQ_INCREMENTAL_STATE_CLEARED`.
pub const STATE_CLEARED: u32 = 1;
/// `TracePacket.SequenceFlags.SEQ_NEEDS_INCREMENTAL_STATE`.
pub const STATE_NEEDED: u32 = 2;
/// `BuiltinClock.BUILTIN_CLOCK_BOOTTIME`, the default of all timestamps.
pub const TRACE_CLOCK: u32 = 6;
/// A clock of one sequence, whose timestamps are differences.
pub const STEP_CLOCK: u32 = 64;
