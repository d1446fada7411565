//! The rules of what a run executes. A spin longer than the wcet is allowed: a wrong wcet must be expressible, so
//! that `verify` can be seen to catch it.

use super::{At, Checker};
use crate::{Body, SpinTarget, Task};
use std::fmt;

impl Checker {
    pub(super) fn body(&mut self, task: &Task, path: &str) {
        match &task.body {
            None => {}
            Some(Body::Spin(target)) => self.spin(task, target, path, At::new(path, "body.spin")),
            Some(Body::Library { library, symbol, init, exit, arguments }) => {
                self.c_text(library, At::new(path, "body.library"), "the library");
                self.c_text(symbol, At::new(path, "body.symbol"), "the symbol");
                for (keys, name) in [("body.init", init), ("body.exit", exit)] {
                    if let Some(name) = name {
                        self.c_text(name, At::new(path, keys), "the symbol");
                    }
                }
                let at = At::new(path, "body.arguments");
                for (index, argument) in arguments.iter().enumerate() {
                    self.no_zero_byte(argument, at.item(index));
                }
            }
            Some(Body::Command(words)) => {
                let at = At::new(path, "body.command");
                match words.first() {
                    None => self.fail(at, "the command is empty", "name a program, as in `[\"./player\"]`"),
                    Some(program) => self.c_text(program, at.item(0), "the program's name"),
                }
                for (index, word) in words.iter().enumerate().skip(1) {
                    self.no_zero_byte(word, at.item(index));
                }
            }
        }
    }

    fn spin(&mut self, task: &Task, target: &SpinTarget, path: &str, at: At<'_>) {
        match target {
            SpinTarget::Total(span) if span.is_zero() => {
                self.fail(at, "the body spins for no time", "spin longer")
            }
            SpinTarget::Fraction(0) => {
                self.fail(
                    at,
                    "the body spins for no part of the wcet",
                    "give a fraction above 0, as in `0.9`",
                );
            }
            SpinTarget::Total(_) | SpinTarget::Fraction(_) => {}
            SpinTarget::PerSegment(spans) => {
                let Some(graph) = task.segment_graph() else {
                    let remedy =
                        "give one duration, as in `spin = \"1.8 ms\"`, or a fraction, as in `spin = 0.9`";
                    self.fail(at, "a list of durations is for tasks with segments", remedy);
                    return;
                };
                if spans.len() != graph.segments.len() {
                    self.fail_beside(
                        at,
                        format!("{} durations for {} segments", spans.len(), graph.segments.len()),
                        "give one duration a segment, in the order of the segments",
                        vec![(At::new(path, "segments").to_string(), "the segments".to_owned())],
                    );
                }
                if let Some(index) = spans.iter().position(|span| span.is_zero()) {
                    self.fail(at.item(index), "the body spins for no time in a segment", "spin longer");
                }
            }
        }
    }

    fn c_text(&mut self, text: &str, at: impl fmt::Display, noun: &str) {
        if text.is_empty() {
            self.fail(&at, format!("{noun} is empty"), "name it");
        }
        self.no_zero_byte(text, at);
    }

    fn no_zero_byte(&mut self, text: &str, at: impl fmt::Display) {
        if text.contains('\0') {
            self.fail(at, "there is a zero byte in the text", "remove it: C ends a text there");
        }
    }
}
