//! Where the fields of a kernel tracepoint lie: parsed from tracefs, since offsets differ between kernels.

use crate::Error;
use crate::kernel_fs::KernelFs;

/// The layout of one tracepoint's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFormat {
    /// `system:name`, as in `sched:sched_switch`.
    pub name: String,
    /// The number that the kernel gave it; stands in the field `common_type` of each record.
    pub id: u32,
    fields: Vec<(String, Field)>,
    flags: Vec<(u64, u8)>,
}

/// The place of one field in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    offset: usize,
    size: usize,
    signed: bool,
}

impl EventFormat {
    /// Reads the format of `system:name`.
    ///
    /// # Errors
    /// Where this kernel has no such tracepoint, or its format file is not understood.
    pub fn read(tracefs: &KernelFs, system: &str, name: &str) -> Result<EventFormat, Error> {
        let path = format!("events/{system}/{name}/format");
        let text = tracefs.read(&path)?;
        EventFormat::parse(&format!("{system}:{name}"), &text)
            .ok_or_else(|| Error::unexpected(format!("read(tracefs/{path})"), "no event format", ""))
    }

    /// Parses the text of a `format` file; `None` where it has no number or a field line is not understood.
    #[must_use]
    pub fn parse(name: &str, text: &str) -> Option<EventFormat> {
        let mut id = None;
        let mut fields = Vec::new();
        let mut flags = Vec::new();
        for line in text.lines() {
            let line = line.trim();
            if let Some(number) = line.strip_prefix("ID:") {
                id = Some(number.trim().parse().ok()?);
            } else if line.starts_with("field:") {
                fields.push(parse_field(line)?);
            } else if line.starts_with("print fmt:") {
                flags = parse_flags(line);
            }
        }
        Some(EventFormat { name: name.to_owned(), id: id?, fields, flags })
    }

    /// The place of the field `name`.
    ///
    /// # Errors
    /// Where this kernel's tracepoint has no such field.
    pub fn field(&self, name: &str) -> Result<Field, Error> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, field)| *field).ok_or_else(|| {
            Error::unsupported(
                format!("field {name} of tracepoint {}", self.name),
                "this kernel is too old or too new",
            )
        })
    }

    /// The (bit, letter) pairs of the first `__print_flags` in the print format: thread states of `sched_switch`.
    #[must_use]
    pub fn flags(&self) -> &[(u64, u8)] {
        &self.flags
    }
}

/// Parses `field:unsigned short common_type; offset:0; size:2; signed:0;`.
fn parse_field(line: &str) -> Option<(String, Field)> {
    let (mut name, mut offset, mut size, mut signed) = (None, None, None, None);
    for part in line.split(';') {
        let Some((key, value)) = part.trim().split_once(':') else { continue };
        match key {
            "field" => {
                let declared = value.rsplit([' ', '*']).next()?;
                name = Some(declared.split('[').next()?.to_owned());
            }
            "offset" => offset = Some(value.parse().ok()?),
            "size" => size = Some(value.parse().ok()?),
            "signed" => signed = Some(value == "1"),
            _ => {}
        }
    }
    Some((name?, Field { offset: offset?, size: size?, signed: signed.unwrap_or(false) }))
}

/// Parses the `{ 0x00000001, "S" }` pairs of one-letter names.
fn parse_flags(line: &str) -> Vec<(u64, u8)> {
    let mut flags = Vec::new();
    for group in line.split('{').skip(1) {
        let Some((bit, rest)) = group.split_once(',') else { continue };
        let Some(letter) = rest.split('"').nth(1) else { continue };
        let bit = bit.trim();
        let number = match bit.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => bit.parse(),
        };
        if let (Ok(number), [letter]) = (number, letter.as_bytes()) {
            flags.push((number, *letter));
        }
    }
    flags
}

impl Field {
    /// Where it begins.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Its first `size` bytes, as of the first element of an array.
    #[must_use]
    pub fn first(&self, size: usize) -> Field {
        Field { size: size.min(self.size), ..*self }
    }

    /// The field as an integer, sign-extended where it is signed; `None` where the record is too short.
    #[must_use]
    pub fn integer(&self, record: &[u8]) -> Option<i64> {
        let bytes = self.bytes(record)?;
        let value = match (bytes.len(), self.signed) {
            (1, false) => i64::from(bytes[0]),
            (1, true) => i64::from(bytes[0] as i8),
            (2, false) => i64::from(u16::from_ne_bytes(bytes.try_into().ok()?)),
            (2, true) => i64::from(i16::from_ne_bytes(bytes.try_into().ok()?)),
            (4, false) => i64::from(u32::from_ne_bytes(bytes.try_into().ok()?)),
            (4, true) => i64::from(i32::from_ne_bytes(bytes.try_into().ok()?)),
            (8, _) => i64::from_ne_bytes(bytes.try_into().ok()?),
            _ => return None,
        };
        Some(value)
    }

    /// The field's bytes; `None` where the record is too short.
    #[must_use]
    pub fn bytes<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        record.get(self.offset..self.offset.checked_add(self.size)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: &str = "name: sched_switch\nID: 372\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\
        \tfield:__data_loc char[] name;\toffset:40;\tsize:4;\tsigned:0;\n\n\
        print fmt: \"prev_comm=%s\", __print_flags(REC->prev_state, \"|\", { 0x00000001, \"S\" }, { 2, \"D\" })\n";

    #[test]
    fn parses_fields_and_state_letters() {
        let format = EventFormat::parse("sched:sched_switch", SWITCH).unwrap();
        assert_eq!(format.id, 372);
        assert_eq!(format.field("prev_pid").unwrap(), Field { offset: 24, size: 4, signed: true });
        assert_eq!(format.field("prev_comm").unwrap().offset, 8);
        assert_eq!(format.field("name").unwrap(), Field { offset: 40, size: 4, signed: false });
        assert_eq!(format.flags(), [(1, b'S'), (2, b'D')]);
        assert!(format.field("next_pid").unwrap_err().to_string().contains("sched:sched_switch"));
    }

    #[test]
    fn reads_integers_by_size_and_sign() {
        let record: Vec<u8> = [&(-2_i32).to_ne_bytes()[..], &0xfffe_u16.to_ne_bytes()].concat();
        assert_eq!(Field { offset: 0, size: 4, signed: true }.integer(&record), Some(-2));
        assert_eq!(Field { offset: 4, size: 2, signed: false }.integer(&record), Some(0xfffe));
        assert_eq!(Field { offset: 4, size: 2, signed: true }.integer(&record), Some(-2));
        assert_eq!(Field { offset: 4, size: 4, signed: true }.integer(&record), None);
        assert_eq!(Field { offset: usize::MAX, size: 4, signed: true }.integer(&record), None);
    }

    #[test]
    fn refuses_broken_formats() {
        assert_eq!(EventFormat::parse("a:b", "no number here"), None);
        assert_eq!(EventFormat::parse("a:b", "ID: 3\nfield:int x;\toffset:what;\tsize:4;"), None);
    }
}
