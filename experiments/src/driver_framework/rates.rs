//! Facts 10 and 11: what a rising packet rate does to a thread above the server, to the packets, and to interrupts.

use super::simulated::run;
use crate::{ExperimentError, ExperimentReport, Fact, Series};
use horolog_sim::ExecutionChoice::AsModelled;

/// Packets a second.
const RATES: [u64; 8] = [1_000, 3_000, 10_000, 30_000, 60_000, 100_000, 300_000, 1_000_000];

pub(super) fn facts(report: &mut ExperimentReport) -> Result<(), ExperimentError> {
    let mut rows = Vec::new();
    for rate in RATES {
        let gap_ns = 1_000_000_000 / rate;
        // Gaps are uniform from half to one and a half of the mean.
        let text = format!(
            "[system]\nname = \"rates\"\n[[task]]\nname = \"task\"\nperiod = \"100 ms\"\nwcet = \"10 ms\"\npriority = 50\n\
             [[interrupt]]\nname = \"eth0\"\nseparation = \"{} ns\"\ncost = \"2 us\"\nthrottling = \"napi\"\n[[device]]\n\
             name = \"net\"\ninterrupt = \"eth0\"\nseparation = \"{} ns\"\nspread = \"{gap_ns} ns\"\nleast_cost = \"10 us\"\n\
             cost = \"20 us\"\nservice = \"thread\"\npriority = 1\nring = 256\n",
            gap_ns / 2,
            gap_ns / 2
        );
        let found = run(&text, 2_000, AsModelled)?;
        let (device, interrupt) = (&found.outcome.devices[0], &found.outcome.interrupts[0]);
        rows.push(vec![
            rate as f64,
            found.response_us(0) as f64,
            device.events as f64,
            device.dropped as f64 / device.events.max(1) as f64,
            interrupt.taken as f64 / device.events.max(1) as f64,
        ]);
    }
    let column = |index: usize| rows.iter().map(|row| row[index]).collect::<Vec<f64>>();
    let (responses, drops, interrupts) = (column(1), column(3), column(4));
    let spread = responses.iter().fold(0.0_f64, |most, value| most.max(*value)) - 10_000.0;
    let overloaded: Vec<f64> = drops.iter().copied().filter(|share| *share > 0.0).collect();
    let grows = overloaded.len() > 2 && overloaded.windows(2).all(|pair| pair[1] > pair[0]);
    let last = |values: &[f64]| values.last().copied().unwrap_or(0.0);
    report.facts.push(Fact::trend(
        10,
        "with the server below the thread, a higher packet rate raises drops, not the thread's response",
        "more drops, the same response",
        format!(
            "from 1 000 to 1 000 000 packets a second: drops 0 to {:.1} %, greatest response {:.0} us above 10 ms at any rate",
            100.0 * last(&drops),
            spread
        ),
        grows && spread <= 2.0,
        "simulated: 2 us an interrupt, 10 to 20 us a packet, a ring of 256, 2 s a rate",
    ));
    let falls = interrupts.windows(2).all(|pair| pair[1] <= pair[0] + 1e-9);
    report.facts.push(Fact::trend(
        11,
        "under NAPI interrupts a packet fall as the packet rate rises",
        "fall",
        interrupts.iter().map(|share| format!("{share:.5}")).collect::<Vec<_>>().join(", "),
        falls && last(&interrupts) < 0.01,
        "simulated, at the rates of the table",
    ));
    let columns =
        ["packets_per_second", "response_us_max", "packets", "dropped_share", "interrupts_per_packet"];
    report.series.push(Series {
        name: "packet rate: the thread's response, drops and interrupts".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
    });
    Ok(())
}
