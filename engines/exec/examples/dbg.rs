use horolog_sys::kernel_trace::{Recorder, RecorderOptions, KernelEventKind as K};
#[path = "../tests/common/mod.rs"]
mod common;
use common::*;
use horolog_model::*;
fn main() {
    for n in 0..40 {
    let mut greedy = task("greedy", 9, ms(100), ms(10));
    greedy.body = Some(Body::Spin(SpinTarget::Total(ms(40))));
    greedy.overrun = OverrunPolicy::Demote;
    let mut victim = task("victim", 1, ms(100), ms(10));
    victim.offset = Some(ms(5));
    let rec = Recorder::start(&RecorderOptions::new(vec![1])).unwrap();
    let result = horolog_exec::run(&system(vec![greedy, victim]), &horolog_exec::RunOptions::for_span(ms(290))).unwrap();
    let r = rec.stop().unwrap();
    if result.outcome.tasks[1].completed != 3 {
        println!("fail {n}");
        for e in r.events { let t = e.time_ns as i64 - result.origin_ns as i64; if t < -1000000 {continue}
            match e.kind {
            K::Switch{prev,prev_state,next} => println!("{t:>12} switch {}:{}:{:?} -> {}:{}:{:?} {prev_state:?}", prev.comm, prev.tid, prev.class(), next.comm, next.tid, next.class()),
            K::Wakeup{thread,..} => println!("{t:>12} wake {}:{}", thread.comm, thread.tid),
            K::Steal{stolen_ns,window_ns} => println!("{t:>12} steal {stolen_ns} {window_ns}"),
            K::Lost(n) => println!("lost {n}"),
            other => println!("{t:>12} {other:?}"), } }
        return;
    } }
}
