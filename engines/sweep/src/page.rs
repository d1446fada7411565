//! The page of a sweep: one file that a browser opens without a network, with the result in it.

use crate::summary::Summary;
use serde_json::Value;

/// The largest whole number that the page's script keeps exactly.
const EXACT: u64 = 1 << 53;

/// The page, without the result.
const PAGE: &str = include_str!("page.html");
/// Where the result goes.
const PLACE: &str = "__DATA__";

/// The page of a result.
///
/// # Errors
/// Where the result has no JSON, which none has not.
pub(crate) fn of(summary: &Summary) -> Result<String, serde_json::Error> {
    // Within a script element nothing but `<` begins what ends it.
    let mut result = serde_json::to_value(summary)?;
    as_texts(&mut result);
    let json = serde_json::to_string(&result)?.replace('<', "\\u003c");
    Ok(PAGE.replacen(PLACE, &json, 1))
}

/// Makes texts of numbers that the script would round: two seeds must not become one.
fn as_texts(value: &mut Value) {
    match value {
        Value::Number(number) if number.as_u64().is_some_and(|number| number > EXACT) => {
            *value = Value::String(number.to_string());
        }
        Value::Array(values) => values.iter_mut().for_each(as_texts),
        Value::Object(values) => values.values_mut().for_each(as_texts),
        _ => {}
    }
}
