//! The kernel's descriptions of its tracepoints, as perf.data and trace.dat carry them.

use super::cursor::Cursor;
use super::{Event, EventKind};

/// Where a field lies in a tracepoint's raw data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Field {
    offset: usize,
    size: usize,
}

impl Field {
    fn number(self, raw: &[u8]) -> Option<u64> {
        let bytes = raw.get(self.offset..self.offset.checked_add(self.size)?)?;
        let mut number = [0; 8];
        number.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(u64::from_le_bytes(number))
    }

    fn text(self, raw: &[u8]) -> Option<String> {
        let bytes = raw.get(self.offset..self.offset.checked_add(self.size)?)?;
        let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        Some(String::from_utf8_lossy(&bytes[..length]).into_owned())
    }
}

/// `sched_switch`.
#[derive(Clone, Copy, Debug)]
struct Switch {
    prev_comm: Field,
    prev_pid: Field,
    prev_prio: Option<Field>,
    prev_state: Field,
    next_comm: Field,
    next_pid: Field,
    next_prio: Option<Field>,
}

/// `sched_wakeup` and `sched_wakeup_new`.
#[derive(Clone, Copy, Debug)]
struct Wakeup {
    comm: Field,
    pid: Field,
    target_cpu: Option<Field>,
    is_new: bool,
}

/// `raw_syscalls:sys_enter`.
#[derive(Clone, Copy, Debug)]
struct Call {
    thread: Field,
    number: Field,
    argument: Field,
}

/// `timer:hrtimer_start`.
#[derive(Clone, Copy, Debug)]
struct Timer {
    thread: Field,
    flags: Field,
    timer: Field,
    expires: Field,
    mode: Field,
}

/// Bits of `common_flags`: an interrupt or a softirq, not the thread that it interrupted.
const IN_INTERRUPT: u64 = 0x08 | 0x10 | 0x40;

/// The tracepoints that are understood, by their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Formats {
    switch: Option<(u64, Switch)>,
    wakeups: Vec<(u64, Wakeup)>,
    call: Option<(u64, Call)>,
    timer: Option<(u64, Timer)>,
    /// Page header: where the timestamp, the length and the data lie (trace.dat only).
    pub(super) page_data: Option<usize>,
}

impl Formats {
    /// Reads what follows `tracing` and the version: the kernel's formats. `None` where it is damaged.
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Option<Formats> {
        let mut formats = Formats::default();
        for name in ["header_page", "header_event"] {
            if cursor.text()? != name {
                return None;
            }
            let size = cursor.u64()?;
            let text = String::from_utf8_lossy(cursor.take(size)?).into_owned();
            if name == "header_page" {
                formats.page_data = field(&text, "data").map(|field| field.offset);
            }
        }
        let count = cursor.u32()?;
        for _ in 0..count {
            let size = cursor.u64()?;
            cursor.skip(size)?;
        }
        let systems = cursor.u32()?;
        for _ in 0..systems {
            let _name = cursor.text()?;
            let events = cursor.u32()?;
            for _ in 0..events {
                let size = cursor.u64()?;
                formats.add(&String::from_utf8_lossy(cursor.take(size)?));
            }
        }
        Some(formats)
    }

    /// Adds one tracepoint's description where it is one of those understood.
    fn add(&mut self, text: &str) {
        let line = |key: &str| {
            text.lines().find_map(|line| line.trim().strip_prefix(key).map(|rest| rest.trim().to_owned()))
        };
        let (Some(name), Some(id)) = (line("name:"), line("ID:").and_then(|id| id.parse().ok())) else {
            return;
        };
        match name.as_str() {
            "sched_switch" => self.switch = switch(text).map(|switch| (id, switch)),
            "sys_enter" => self.call = call(text).map(|call| (id, call)),
            "hrtimer_start" => self.timer = timer(text).map(|timer| (id, timer)),
            "sched_wakeup" | "sched_wakeup_new" => {
                if let (Some(comm), Some(pid)) = (field(text, "comm"), field(text, "pid")) {
                    self.wakeups.push((
                        id,
                        Wakeup {
                            comm,
                            pid,
                            target_cpu: field(text, "target_cpu"),
                            is_new: name == "sched_wakeup_new",
                        },
                    ));
                }
            }
            _ => {}
        }
    }

    pub(super) fn has_switches(&self) -> bool {
        self.switch.is_some()
    }

    /// The event in a tracepoint's raw data; `None` for other tracepoints.
    pub(super) fn event(&self, time: u64, cpu: u32, raw: &[u8]) -> Option<Event> {
        let id = u64::from(u16::from_le_bytes(raw.get(..2)?.try_into().ok()?));
        if let Some((switch_id, switch)) = &self.switch
            && *switch_id == id
        {
            let kind = EventKind::Switch {
                prev: switch.prev_pid.number(raw)? as u32,
                prev_comm: switch.prev_comm.text(raw)?,
                prev_prio: priority(switch.prev_prio, raw),
                prev_state: state_letter(switch.prev_state.number(raw)?),
                next: switch.next_pid.number(raw)? as u32,
                next_comm: switch.next_comm.text(raw)?,
                next_prio: priority(switch.next_prio, raw),
            };
            return Some(Event { time, cpu, kind });
        }
        if let Some((call_id, call)) = &self.call
            && *call_id == id
        {
            let kind = EventKind::Call {
                thread: call.thread.number(raw)? as u32,
                number: call.number.number(raw)?.cast_signed(),
                argument: call.argument.number(raw)?,
            };
            return Some(Event { time, cpu, kind });
        }
        if let Some((timer_id, timer)) = &self.timer
            && *timer_id == id
        {
            if timer.flags.number(raw)? & IN_INTERRUPT != 0 {
                return None;
            }
            let kind = EventKind::Timer {
                thread: timer.thread.number(raw)? as u32,
                timer: timer.timer.number(raw)?,
                expires: timer.expires.number(raw)?,
                absolute: timer.mode.number(raw)? & 1 == 0,
            };
            return Some(Event { time, cpu, kind });
        }
        let (_, wakeup) = self.wakeups.iter().find(|(wakeup_id, _)| *wakeup_id == id)?;
        let cpu = wakeup.target_cpu.and_then(|field| field.number(raw)).map_or(cpu, |target| target as u32);
        let kind = EventKind::Wakeup {
            thread: wakeup.pid.number(raw)? as u32,
            comm: wakeup.comm.text(raw)?,
            is_new: wakeup.is_new,
        };
        Some(Event { time, cpu, kind })
    }
}

fn switch(text: &str) -> Option<Switch> {
    Some(Switch {
        prev_comm: field(text, "prev_comm")?,
        prev_pid: field(text, "prev_pid")?,
        prev_prio: field(text, "prev_prio"),
        prev_state: field(text, "prev_state")?,
        next_comm: field(text, "next_comm")?,
        next_pid: field(text, "next_pid")?,
        next_prio: field(text, "next_prio"),
    })
}

fn call(text: &str) -> Option<Call> {
    let arguments = field(text, "args")?;
    Some(Call {
        thread: field(text, "common_pid")?,
        number: field(text, "id")?,
        argument: Field { size: arguments.size.min(8), ..arguments },
    })
}

fn timer(text: &str) -> Option<Timer> {
    Some(Timer {
        thread: field(text, "common_pid")?,
        flags: field(text, "common_flags")?,
        timer: field(text, "hrtimer")?,
        expires: field(text, "softexpires")?,
        mode: field(text, "mode")?,
    })
}

/// A kernel priority number, which is signed.
fn priority(field: Option<Field>, raw: &[u8]) -> Option<i32> {
    Some((field?.number(raw)? as u32).cast_signed())
}

/// A line like `field:char prev_comm[16]; offset:8; size:16; signed:0;`.
fn field(text: &str, name: &str) -> Option<Field> {
    text.lines().find_map(|line| {
        let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
        let declared = parts.next()?.rsplit(|c: char| c.is_whitespace() || c == '*').next()?;
        if declared.split('[').next()? != name {
            return None;
        }
        let mut number = |key: &str| parts.next()?.strip_prefix(key)?.parse().ok();
        Some(Field { offset: number("offset:")?, size: number("size:")? })
    })
}

/// The kernel's letter for a thread's state at a switch; `R` where it could have run on.
fn state_letter(state: u64) -> u8 {
    const LETTERS: [(u64, u8); 8] =
        [(1, b'S'), (2, b'D'), (4, b'T'), (8, b't'), (0x10, b'X'), (0x20, b'Z'), (0x40, b'P'), (0x80, b'I')];
    LETTERS.into_iter().find(|(bit, _)| state & bit != 0).map_or(b'R', |(_, letter)| letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &str = "name: sched_wakeup\nID: 318\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;\n";

    #[test]
    fn a_description_places_the_fields() {
        let mut formats = Formats::default();
        formats.add(FORMAT);
        let mut raw = vec![0; 36];
        raw[..2].copy_from_slice(&318_u16.to_le_bytes());
        raw[8..12].copy_from_slice(b"worm");
        raw[24..28].copy_from_slice(&77_u32.to_le_bytes());
        raw[32] = 3;
        let event = formats.event(5, 0, &raw).expect("a wake-up");
        assert_eq!(event.cpu, 3);
        assert_eq!(event.kind, EventKind::Wakeup { thread: 77, comm: "worm".to_owned(), is_new: false });
        assert!(formats.event(5, 0, &raw[..20]).is_none());
        assert!(formats.event(5, 0, &[1, 0, 0]).is_none());
        assert!(field(FORMAT, "com").is_none());
    }

    #[test]
    fn states_have_the_kernels_letters() {
        assert_eq!(
            (state_letter(0), state_letter(0x100), state_letter(1), state_letter(0x80)),
            (b'R', b'R', b'S', b'I')
        );
    }
}
