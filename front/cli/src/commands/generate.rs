//! `horolog completions` and `horolog man`.

use crate::arguments::Arguments;
use crate::failure::{Done, Failure, Verdict};
use clap::CommandFactory;

pub(crate) fn completions(shell: clap_complete::Shell) -> Done {
    clap_complete::generate(shell, &mut Arguments::command(), "horolog", &mut std::io::stdout());
    Ok(Verdict::Holds)
}

pub(crate) fn man() -> Done {
    clap_mangen::Man::new(Arguments::command()).render(&mut std::io::stdout()).map_err(Failure::bad_input)?;
    Ok(Verdict::Holds)
}
