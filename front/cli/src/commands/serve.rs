//! `horolog serve`.

use crate::arguments::{Format, ServeArguments};
use crate::commands::run::stop_on_interrupt;
use crate::failure::{Done, Failure, Verdict};
use crate::serve_arguments::{AccountingWord, KindWord, NoticeWord};
use crate::{output, progress};
use horolog_closed_loop::{Guard, serve_thread};
use horolog_exec::thread_server::{Accounting, Notice, Rules, ThreadServerOptions};
use horolog_model::SporadicRules;

pub(crate) fn run(words: &ServeArguments) -> Done {
    let mut options = ThreadServerOptions::sporadic(words.tid, words.budget, words.period, words.priority);
    let sporadic = |rules| Rules::Sporadic { max_replenishments: words.max_replenishments, rules };
    options.rules = match words.kind {
        KindWord::Sporadic => sporadic(SporadicRules::Corrected),
        KindWord::SporadicPosix => sporadic(SporadicRules::Posix),
        KindWord::Deferrable => Rules::Deferrable,
        KindWord::Polling => Rules::Polling,
    };
    options.low = words.low_priority;
    options.accounting = words.accounting.map(|word| match word {
        AccountingWord::TaskClock => Accounting::TaskClock,
        AccountingWord::Schedstat => Accounting::SchedStat,
    });
    options.notice = match words.notice {
        NoticeWord::OneShot => Notice::OneShot,
        NoticeWord::Overflow => Notice::Overflow,
    };
    options.wake_cost = words.wake_cost;
    let stop = stop_on_interrupt()?;
    let activity = progress::Activity::start("serving");
    let report = serve_thread(&options, words.duration, &stop, Guard::ThisProgram).map_err(Failure::from)?;
    drop(activity);
    match words.format {
        Format::Json => output::json(&report)?,
        Format::Table => output::thread_server(&report),
    }
    Ok(Verdict::Holds)
}
