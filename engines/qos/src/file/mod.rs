//! The file of a problem, `horolog.qos/1`; `docs/concepts/quality-of-service.md` describes every key.

mod application;

use crate::problem::{MOST_RESOURCES, Problem, Resource};
use application::{ApplicationPlaces, applications};
use horolog_model::Diagnostics;
use horolog_model::file::table::{Document, Finding, Table};
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// What the file's `schema` says.
pub const SCHEMA: &str = "horolog.qos/1";

const DOCUMENT: Document = Document {
    what: "a file of qualities",
    schema: Some(SCHEMA),
    header: "[[application]]",
    sections: &["schema", "qos", "resource", "application"],
};

/// Reads a problem from its text; `name` is what messages call it.
///
/// # Errors
/// Everything that is wrong with it, each at its place and with a remedy.
///
/// ```
/// let text = r#"
/// schema = "horolog.qos/1"
/// [qos]
/// name = "one"
/// [[resource]]
/// name = "cpu"
/// capacity = 100
/// [[application]]
/// name = "camera"
/// set_point = [
///   { name = "low", utility = 1, uses = { cpu = 10 } },
///   { name = "high", utility = 2.5, uses = { cpu = 40 } },
/// ]
/// "#;
/// let problem = horolog_qos::file::read(text, "one.toml").unwrap();
/// assert_eq!(problem.applications()[0].set_points[1].utility, 2_500_000_000);
/// let errors = horolog_qos::file::read(&text.replace("cpu = 40", "gpu = 40"), "one.toml").unwrap_err();
/// assert!(errors.to_string().contains("there is no resource `gpu`"));
/// ```
pub fn read(text: &str, name: &str) -> Result<Problem, Diagnostics> {
    DOCUMENT.read(name, text, problem)
}

fn problem(root: &DeTable<'_>, found: &mut Vec<Finding>) -> Option<Problem> {
    let mut head = Table::named(root, "qos", found);
    let name = head.text("name", "\"my applications\"");
    let divisible = head.truth("divisible");
    head.close();
    let resources = resources(root, found);
    let read = resources.as_ref().and_then(|resources| applications(root, resources, found));
    let (applications, places) = read?;
    match Problem::new(name?, resources?, applications, divisible?) {
        Ok(problem) => Some(problem),
        Err(error) => {
            let place = place_of(&error, &places);
            found.push((place, error.reason, error.remedy));
            None
        }
    }
}

/// Where an application, or one of its set-points, stands.
fn place_of(error: &crate::ProblemError, places: &[ApplicationPlaces]) -> Range<usize> {
    let Some(place) = error.application.and_then(|application| places.get(application)) else { return 0..0 };
    let point = error.set_point.and_then(|point| place.set_points.get(point));
    point.unwrap_or(&place.name).clone()
}

/// The tables of `[[name]]`.
pub(crate) fn items<'t>(
    root: &'t DeTable<'t>,
    name: &'static str,
    example: &str,
    found: &mut Vec<Finding>,
) -> Option<Vec<(Range<usize>, &'t DeTable<'t>)>> {
    let Some(value) = root.get(name) else {
        found.push((0..0, format!("there is no [[{name}]]"), format!("add one: {example}")));
        return None;
    };
    let remedy = || format!("write `[[{name}]]` and its keys on the lines below");
    let DeValue::Array(list) = value.get_ref() else {
        found.push((value.span(), format!("`{name}` is a list of tables"), remedy()));
        return None;
    };
    let mut tables = Vec::with_capacity(list.len());
    for item in list {
        match item.get_ref() {
            DeValue::Table(table) => tables.push((item.span(), table)),
            _ => found.push((item.span(), format!("`{name}` is a list of tables"), remedy())),
        }
    }
    (tables.len() == list.len()).then_some(tables)
}

fn resources(root: &DeTable<'_>, found: &mut Vec<Finding>) -> Option<Vec<Resource>> {
    let example = "`[[resource]]`, `name = \"cpu\"`, `capacity = 1000`";
    let tables = items(root, "resource", example, found)?;
    if tables.is_empty() || tables.len() > MOST_RESOURCES {
        let at = root.get("resource").map_or(0..0, toml::Spanned::span);
        let reason = format!("there are {} resources", tables.len());
        found.push((at, reason, format!("give from 1 to {MOST_RESOURCES}")));
        return None;
    }
    let mut resources: Vec<Resource> = Vec::new();
    let all = tables.len();
    for (place, table) in tables {
        let mut table = Table::of("[[resource]]", place, table, found);
        let name = table.text("name", "\"cpu\"");
        let capacity = table.amount("capacity", "1000");
        let unit = table.optional_text("unit", "\"us in 10 ms\"");
        if let Some(name) = &name
            && resources.iter().any(|one| one.name == *name)
        {
            let at = table.place("name");
            table.fail(at, format!("two resources are called `{name}`"), "rename one of them");
            table.close();
            continue;
        }
        table.close();
        let (Some(name), Some(capacity), Some(unit)) = (name, capacity, unit) else { continue };
        resources.push(Resource { name, unit: unit.unwrap_or_default(), capacity });
    }
    (resources.len() == all).then_some(resources)
}
