//! No bytes make the reader of traces panic or read more records than there are bytes; what it reads, every exporter that
//! needs no file takes.

#![no_main]

use horolog_time::Instant;
use horolog_trace::file::Reader;
use horolog_trace::show::{Names, line_with};
use horolog_trace::user_statistics::UserStatistics;
use horolog_trace::{Kind, perfetto};
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;

fuzz_target!(|data: &[u8]| {
    let Ok(mut reader) = Reader::new(Cursor::new(data)) else { return };
    let header = reader.header().clone();
    let mut users = UserStatistics::default();
    let mut exporter = perfetto::Exporter::new(Vec::new(), &header).expect("memory");
    let mut records = 0;
    while let Some(record) = reader.next_record() {
        records += 1;
        let names = Names {
            tasks: &header.tasks,
            threads: reader.threads(),
            events: reader.events(),
            system: None,
            start: header.start,
        };
        assert!(!line_with(&record, reader.arguments(), &names).is_empty());
        match reader.user_event(&record) {
            Some(event) => {
                users.take(&event);
                exporter.take_user(&event).expect("memory");
            }
            None => {
                assert_ne!(record.kind, Kind::User);
                exporter.take(&record).expect("memory");
            }
        }
    }
    assert!(records <= data.len());
    assert!(reader.footer().is_some() || reader.damage().is_some());
    let _ = users.summary(reader.threads());
    exporter.finish(Instant::ZERO).expect("memory");
    // From the foot backwards, and into the middle.
    if let Ok(mut reader) = Reader::new(Cursor::new(data))
        && reader.load_footer().is_ok()
        && reader.seek(Instant::from_ns(1 << 20)).is_ok()
    {
        reader.take(1_000).for_each(drop);
    }
});
