//! Spans and events of the `tracing` crate as horolog's: `horolog trace record -- target/debug/examples/answers`.

use tracing_subscriber::prelude::*;

fn main() {
    if let Err(error) = horolog_probe::start() {
        eprintln!("not traced: {error}");
    }
    tracing_subscriber::registry().with(horolog_tracing::layer()).init();
    for request in 0..3_u64 {
        let _answer = tracing::info_span!("answer", request, flow = request).entered();
        tracing::info!(port = 80, "request {request} is answered");
    }
    println!("answered 3 requests");
}
