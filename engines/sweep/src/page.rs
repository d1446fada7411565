//! The page of a sweep: one file that a browser opens without a network, with the result in it.

use crate::summary::Summary;

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
    let json = serde_json::to_string(summary)?.replace('<', "\\u003c");
    Ok(PAGE.replacen(PLACE, &json, 1))
}
