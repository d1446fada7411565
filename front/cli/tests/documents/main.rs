//! The documents say what is so: every fenced block of the README and of `docs/` is carried out, and every verb, option,
//! key and file that they name is there.
//!
//! What is done with a block is said behind its language:
//!
//! | block | what is done |
//! |---|---|
//! | `console` | each `$ ` line is run; what it prints is what is below it, `[..]` and `...` left open; its status is `exit=N`, else that of its closing line, 2 for an error, else 0 |
//! | `sh` | run by bash, which ends at the first failure; with `file=NAME` only saved |
//! | `toml` | `horolog check` accepts it, with `refused` refuses it; `base=NAME`: in the place that `bases/NAME.toml` leaves |
//! | `json` | each of its keys is in what the command prints that is named behind it, `of="COMMAND"`; longer ones lie in `json/` |
//! | `c`, `rust` | `file=NAME`: the C compiles; `from=FILE`: its lines are in that file, which is built by other tests |
//! | any, with `file=NAME` | is saved for the blocks below; the sentence before it names the file; `append=NAME`: added to it |
//! | `text` | nothing; the reason is behind it |
//!
//! `needs=A,B` names programs, modules of Python (`python:duckdb`), facts of `horolog doctor`, `root` and `cpu-1`: where the machine has not got them, the block is skipped
//! and the output says so. `HOROLOG_BLESS=1` writes into the page what its commands print, `HOROLOG_PAGE=PART` looks at the
//! pages alone whose path holds the part.

#[path = "../common/mod.rs"]
mod common;

mod blocks;
mod figures;
mod generated;
mod names;
mod page;
mod said;
mod workshop;
