//! Manual pages, one a verb: what the command line says of itself, and the sections of [`pages`].

mod pages;

use crate::arguments::Arguments;
use clap::{Arg, ArgAction, Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};
use pages::{Page, pages};

/// The name of the whole manual.
const MANUAL: &str = "horolog manual";

/// When these pages were last changed by hand; `mandoc` wants a date.
const DATE: &str = "2026-11-26";

/// One page: `horolog-trace-record`, and its text.
pub(crate) struct Rendered {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// The page of a verb (`["trace", "record"]`), or of the command itself.
///
/// # Errors
/// The verbs that there are, where there is none of that name.
pub(crate) fn page(verb: &[String]) -> Result<Rendered, String> {
    let mut command = built();
    for word in verb {
        let found = visible(&command).find(|command| command.get_name() == word).cloned();
        command = found.ok_or_else(|| {
            let known: Vec<&str> = visible(&command).map(Command::get_name).collect();
            format!("there is no verb `{}`; at `{word}` there are: {}", verb.join(" "), known.join(", "))
        })?;
    }
    render(command, &verb.join(" ")).map_err(|error| error.to_string())
}

/// Every page.
///
/// # Errors
/// Where one cannot be rendered.
pub(crate) fn all() -> Result<Vec<Rendered>, String> {
    verbs().iter().map(|verb| page(verb)).collect()
}

/// Every verb with its words; the command itself, without any, first.
fn verbs() -> Vec<Vec<String>> {
    fn below(command: &Command, path: &[String], verbs: &mut Vec<Vec<String>>) {
        verbs.push(path.to_vec());
        for verb in visible(command) {
            let path: Vec<String> = path.iter().cloned().chain([verb.get_name().to_owned()]).collect();
            below(verb, &path, verbs);
        }
    }
    let mut verbs = Vec::new();
    below(&built(), &[], &mut verbs);
    verbs
}

/// The command line with the names that pages bear.
fn built() -> Command {
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    command
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|verb| !verb.is_hide_set())
}

fn render(command: Command, verb: &str) -> std::io::Result<Rendered> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let verbs: Vec<String> = visible(&command).map(|verb| verb.get_name().to_owned()).collect();
    let synopsis = synopsis(&command);
    let man = Man::new(command)
        .title(name.to_uppercase())
        .date(DATE)
        .source(format!("horolog {}", env!("CARGO_PKG_VERSION")))
        .manual(MANUAL);
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    synopsis.to_writer(&mut text)?;
    man.render_description_section(&mut text)?;
    let mut options = Vec::new();
    man.render_options_section(&mut options)?;
    text.extend(tidy(&String::from_utf8_lossy(&options)).bytes());
    if !verbs.is_empty() {
        man.render_subcommands_section(&mut text)?;
    }
    if let Some(page) = pages().find(|page| page.verb == verb) {
        sections(page).to_writer(&mut text)?;
    }
    see_also(&name, verb, &verbs).to_writer(&mut text)?;
    Ok(Rendered { text: String::from_utf8_lossy(&text).into_owned(), name })
}

/// Without the blank lines beside breaks, which renderers warn of.
fn tidy(options: &str) -> String {
    options.replace("\n.br\n\n.br\n", "\n.br\n").replace("\n\n.br\n", "\n")
}

/// What is written by hand.
fn sections(page: &Page) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["EXAMPLES"]);
    for (command, what) in page.examples {
        roff.control("TP", []);
        roff.text([bold(*command)]);
        roff.text([roman(*what)]);
    }
    roff.control("SH", ["EXIT STATUS"]);
    for (status, when) in page.exit {
        roff.control("TP", []);
        roff.text([bold(status.to_string())]);
        roff.text([roman(*when)]);
    }
    roff.control("SH", ["FILES"]);
    for (file, what) in page.files {
        roff.control("TP", []);
        roff.text([bold(*file)]);
        roff.text([roman(*what)]);
    }
    roff
}

/// How the command is called: every option with its value, and whether a word may be given again.
fn synopsis(command: &Command) -> Roff {
    let mut line = vec![bold(command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned())];
    // What every verb has is on the page of the command itself.
    let is_common = |argument: &Arg| ["help", "version"].contains(&argument.get_id().as_str());
    let shown = command.get_arguments().filter(|argument| !argument.is_hide_set() && !is_common(argument));
    let (positional, options): (Vec<&Arg>, Vec<&Arg>) = shown.partition(|argument| argument.is_positional());
    for option in options {
        let names = [
            option.get_short().map(|name| format!("-{name}")),
            option.get_long().map(|name| format!("--{name}")),
        ];
        let mut parts = Vec::new();
        for (at, name) in names.into_iter().flatten().enumerate() {
            parts.extend((at > 0).then(|| roman("|")));
            parts.push(bold(name));
        }
        if option.get_action().takes_values() {
            parts.push(roman(" "));
            parts.push(italic(value_name(option)));
        }
        enclose(&mut line, parts, option.is_required_set(), matches!(option.get_action(), ArgAction::Append));
    }
    for argument in positional {
        let has_many = argument.get_num_args().is_some_and(|count| count.max_values() > 1);
        let name = if argument.is_last_set() {
            format!("-- {}", value_name(argument))
        } else {
            value_name(argument)
        };
        enclose(&mut line, vec![italic(name)], argument.is_required_set(), has_many);
    }
    if command.has_subcommands() {
        enclose(&mut line, vec![italic("VERB")], true, true);
    }
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    roff.text(line);
    roff
}

fn value_name(argument: &Arg) -> String {
    let names = argument.get_value_names().unwrap_or_default();
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    if names.is_empty() { argument.get_id().as_str().to_uppercase() } else { names.join(" ") }
}

/// A word of the synopsis: in brackets where it may be left out, with dots where it may be given again.
fn enclose(line: &mut Vec<Inline>, parts: Vec<Inline>, is_required: bool, has_many: bool) {
    let (open, close) = if is_required { (" ", "") } else { (" [", "]") };
    line.push(roman(open));
    line.extend(parts);
    line.push(roman(format!("{close}{}", if has_many { "..." } else { "" })));
}

/// The page above, those beside, and those below.
fn see_also(name: &str, verb: &str, below: &[String]) -> Roff {
    let mut path: Vec<&str> = verb.split(' ').filter(|word| !word.is_empty()).collect();
    let own = path.pop();
    let mut pages = Vec::new();
    if own.is_some() {
        let above = [&["horolog"], path.as_slice()].concat().join("-");
        let mut parent = built();
        for word in &path {
            let Some(found) = visible(&parent).find(|command| command.get_name() == *word).cloned() else {
                break;
            };
            parent = found;
        }
        let beside = visible(&parent).map(Command::get_name).filter(|beside| Some(*beside) != own);
        pages.extend(beside.map(|beside| format!("{above}-{beside}")));
        pages.insert(0, above);
    }
    pages.extend(below.iter().map(|verb| format!("{name}-{verb}")));
    let pages: Vec<String> = pages.iter().map(|page| format!("{page}(1)")).collect();
    let mut roff = Roff::new();
    roff.control("SH", ["SEE ALSO"]);
    roff.text([roman(pages.join(", "))]);
    roff
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of an example as a shell would hand them to the program, up to a pipe or a redirection.
    fn words(example: &str) -> Vec<String> {
        let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
        for letter in example.chars() {
            match (quote, letter) {
                (Some(mark), letter) if mark == letter => quote = None,
                (None, '\'' | '"') => {
                    quote = Some(letter);
                    word.get_or_insert_default();
                }
                (None, ' ') => words.extend(word.take()),
                (_, letter) => word.get_or_insert_default().push(letter),
            }
        }
        assert_eq!(quote, None, "{example}: a quotation does not end");
        words.extend(word);
        let end = words.iter().position(|word| ["|", ">", "&&", "&"].contains(&word.as_str()));
        words.truncate(end.unwrap_or(words.len()));
        words
    }

    /// The verb that clap finds in these words.
    fn parsed(words: &[String]) -> Result<String, clap::Error> {
        let matches = Arguments::command().try_get_matches_from(words)?;
        let (mut verb, mut at) = (Vec::new(), &matches);
        while let Some((name, below)) = at.subcommand() {
            verb.push(name.to_owned());
            at = below;
        }
        Ok(verb.join(" "))
    }

    #[test]
    fn every_verb_has_a_page_and_every_page_a_verb() {
        let verbs: Vec<String> = verbs().iter().map(|verb| verb.join(" ")).collect();
        assert!(verbs.len() > 30 && verbs.contains(&"trace record".to_owned()), "{verbs:?}");
        let pages: Vec<&str> = pages().map(|page| page.verb).collect();
        let missing: Vec<&String> = verbs.iter().filter(|verb| !pages.contains(&verb.as_str())).collect();
        assert!(missing.is_empty(), "without a page: {missing:?}");
        let unknown: Vec<&&str> = pages.iter().filter(|page| !verbs.contains(&(**page).to_owned())).collect();
        assert!(unknown.is_empty(), "of no verb: {unknown:?}");
        assert_eq!(pages.len(), verbs.len(), "a verb has two pages");
    }

    #[test]
    fn every_page_has_its_sections() {
        for page in pages() {
            assert!(!page.examples.is_empty() && !page.files.is_empty(), "{}", page.verb);
            let statuses: Vec<u8> = page.exit.iter().map(|(status, _)| *status).collect();
            assert!(statuses.is_sorted() && statuses.contains(&0) && statuses.contains(&2), "{}", page.verb);
        }
        for page in all().expect("pages") {
            for section in ["NAME", "SYNOPSIS", "OPTIONS", "EXAMPLES", "\"EXIT STATUS\"", "FILES"] {
                let head = format!("\n.SH {section}\n");
                assert_eq!(page.text.matches(&head).count(), 1, "{}: {section}", page.name);
            }
        }
    }

    #[test]
    fn a_synopsis_has_values_and_a_page_its_siblings() {
        let text = |verb: &str| {
            let words: Vec<String> = verb.split(' ').map(str::to_owned).collect();
            page(&words)
                .expect("a page")
                .text
                .replace("\\-", "-")
                .replace("\\fR", "")
                .replace("\\fB", "")
                .replace("\\fI", "")
        };
        let analyze = text("analyze");
        for part in ["[--set PATH=VALUE]...", "[--format FORMAT[=FILE]]...", "[--explain TASK]", " FILE..."] {
            assert!(analyze.contains(part), "{part}: {analyze}");
        }
        assert!(text("trace record").contains("[-o|--out FILE]"), "a short name and its value");
        assert!(text("trace record").contains("[-- COMMAND]..."), "a command is many words");
        let siblings = text("trace record");
        for page in ["horolog-trace(1)", "horolog-trace-show(1)", "horolog-trace-locks(1)"] {
            assert!(siblings.contains(page), "{page}");
        }
        assert!(!siblings.contains("horolog-trace-record(1)") && !siblings.contains("horolog-loop(1)"));
        assert!(text("check-certificate").contains("horolog(1), horolog-init(1)"));
        assert!(text("trace").contains("horolog-loop(1)") && text("trace").contains("horolog-trace-show(1)"));
    }

    #[test]
    fn every_example_is_one_of_its_verb() {
        for page in pages() {
            for (example, _) in page.examples {
                let mut words = words(example);
                if words.first().is_some_and(|word| word == "sudo") {
                    words.remove(0);
                }
                assert_eq!(words.first().map(String::as_str), Some("horolog"), "{example}");
                match parsed(&words) {
                    // The pages of a group show what is below it.
                    Ok(verb) => assert!(verb.starts_with(page.verb), "{}: {example}: {verb}", page.verb),
                    Err(error) if !error.use_stderr() => assert_eq!(page.verb, "", "{example}"),
                    Err(error) => panic!("{}: {example}\n{error}", page.verb),
                }
            }
        }
    }

    #[test]
    fn a_wrong_example_would_be_noticed() {
        assert!(parsed(&words("horolog loop")).is_err());
        assert!(parsed(&words("horolog loop system.toml --fast")).is_err());
        assert_eq!(words("horolog trace show 'a b' | head"), ["horolog", "trace", "show", "a b"]);
    }

    #[test]
    fn a_verb_that_is_not_there_is_told_with_those_that_are() {
        let words = ["trace", "recrod"].map(str::to_owned);
        let said = page(&words).err().expect("there is none");
        assert!(said.contains("`trace recrod`") && said.contains("record"), "{said}");
    }
}
