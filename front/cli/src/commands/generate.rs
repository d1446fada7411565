//! `horolog completions` and `horolog man`.

use crate::arguments::Arguments;
use crate::failure::{Done, Failure, Verdict};
use crate::output;
use clap::CommandFactory;

pub(crate) fn completions(shell: clap_complete::Shell) -> Done {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "horolog", &mut text);
    print(&text);
    Ok(Verdict::Holds)
}

pub(crate) fn man() -> Done {
    let mut text = Vec::new();
    clap_mangen::Man::new(Arguments::command()).render(&mut text).map_err(Failure::bad_input)?;
    print(&text);
    Ok(Verdict::Holds)
}

fn print(text: &[u8]) {
    output::write(format_args!("{}", String::from_utf8_lossy(text)));
}
