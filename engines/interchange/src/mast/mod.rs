//! MAST's models, as text and as XML: fixed priorities and EDF on processors of their own, shared resources, and transactions of one activity.
//!
//! Both forms are read into one tree of items (`tree`), from which `system` and `operations` make the system.

mod form;
mod operations;
mod system;
mod text;
mod tree;
mod xml;

pub(crate) use text::read as read_text;
pub(crate) use xml::read as read_xml;
