//! Small programs for the kernel's own virtual machine (BPF), written here and checked by the kernel's verifier.
//!
//! Everything made here ends with its descriptor, so with the process, however that ends: no file is pinned.

mod assembler;

pub use assembler::{Assembler, Condition, Instruction, Label, Operation, Register, Size};

use crate::Error;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

/// What loading and attaching needs.
pub const REMEDY: &str = concat!(
    "run as root, or with CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN, in a container that allows bpf(2), on a kernel with ",
    "CONFIG_BPF_SYSCALL"
);

const MAP_CREATE: i32 = 0;
const MAP_LOOKUP: i32 = 1;
const MAP_UPDATE: i32 = 2;
const PROGRAM_LOAD: i32 = 5;
const TEST_RUN: i32 = 10;
const INFO_BY_DESCRIPTOR: i32 = 15;
const RAW_TRACEPOINT_OPEN: i32 = 17;
const LINK_CREATE: i32 = 28;
/// `BPF_XDP` of the attach types.
const ATTACH_XDP: u32 = 37;
/// A license that helpers for GPL programs accept, and that is ours, too.
const LICENSE: &[u8] = b"Dual MIT/GPL\0";

/// The kinds of map that are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapKind {
    /// Keys of 4 bytes, and values.
    Hash,
    /// Values by index.
    Array,
    /// A queue for each CPU, from which a thread of the kernel takes packets.
    Cpus,
}

impl MapKind {
    const fn number(self) -> u32 {
        match self {
            MapKind::Hash => 1,
            MapKind::Array => 2,
            MapKind::Cpus => 16,
        }
    }
}

/// The kinds of program that are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProgramKind {
    /// Looks at each packet before the protocols do.
    Xdp,
    /// Is called with the arguments of a tracepoint.
    RawTracepoint,
}

/// Where in the kernel an XDP program looks at packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum XdpMode {
    /// In the device's driver.
    Driver,
    /// Behind it, for drivers that have no place of their own; slower.
    Generic,
}

/// `union bpf_attr` of the kernel, as far as it is used; the rest is zero.
struct Attributes([u64; 18]);

impl Attributes {
    fn new() -> Attributes {
        Attributes([0; 18])
    }

    /// Sets the 32 bits at this offset in bytes.
    fn word(mut self, offset: usize, value: u32) -> Attributes {
        let mut bytes = self.0[offset / 8].to_ne_bytes();
        bytes[offset % 8..offset % 8 + 4].copy_from_slice(&value.to_ne_bytes());
        self.0[offset / 8] = u64::from_ne_bytes(bytes);
        self
    }

    /// Sets the 64 bits at this offset in bytes, a multiple of 8.
    fn long(mut self, offset: usize, value: u64) -> Attributes {
        self.0[offset / 8] = value;
        self
    }

    /// Makes a call that answers in the attributes, too.
    ///
    /// # Safety
    /// As [`Attributes::call`].
    unsafe fn change(&mut self, command: i32) -> std::io::Result<i32> {
        // SAFETY: the attributes are writable for their size; for what they point to the caller vouches.
        let answer = unsafe {
            libc::syscall(libc::SYS_bpf, command, self.0.as_mut_ptr(), size_of_val(&self.0) as libc::c_uint)
        };
        if answer < 0 { Err(std::io::Error::last_os_error()) } else { Ok(answer as i32) }
    }

    /// Makes the call. The result is what the kernel answers, never negative.
    ///
    /// # Safety
    /// Every address in the attributes must be valid for what the command reads and writes there.
    unsafe fn call(&self, command: i32) -> std::io::Result<i32> {
        // SAFETY: the attributes are readable for their size; for what they point to the caller vouches.
        let answer = unsafe {
            libc::syscall(libc::SYS_bpf, command, self.0.as_ptr(), size_of_val(&self.0) as libc::c_uint)
        };
        if answer < 0 { Err(std::io::Error::last_os_error()) } else { Ok(answer as i32) }
    }
}

fn descriptor(answer: std::io::Result<i32>, what: impl Into<String>) -> Result<OwnedFd, Error> {
    let number = answer.map_err(|error| Error::io(what, &error, REMEDY))?;
    // SAFETY: the kernel just gave this descriptor to us (closed on exec), and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// A table that programs and this process share.
#[derive(Debug)]
pub struct Map {
    descriptor: OwnedFd,
    kind: MapKind,
    value_size: usize,
}

impl Map {
    /// A map with keys of 4 bytes; of an array all entries are there and zero.
    ///
    /// # Errors
    /// Where the kernel or the rights do not allow it.
    pub fn create(kind: MapKind, value_size: usize, entries: u32) -> Result<Map, Error> {
        let attributes =
            Attributes::new().word(0, kind.number()).word(4, 4).word(8, value_size as u32).word(12, entries);
        // SAFETY: this command follows no addresses.
        let answer = unsafe { attributes.call(MAP_CREATE) };
        let descriptor = descriptor(answer, format!("bpf(BPF_MAP_CREATE, {kind:?})"))?;
        Ok(Map { descriptor, kind, value_size })
    }

    fn entry(&self, key: &u32, value: *const u8) -> Attributes {
        Attributes::new()
            .word(0, self.descriptor.as_raw_fd() as u32)
            .long(8, std::ptr::from_ref(key) as u64)
            .long(16, value as u64)
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// Where the value has another size, or the kernel refuses.
    pub fn set(&self, key: u32, value: &[u8]) -> Result<(), Error> {
        let what = || format!("bpf(BPF_MAP_UPDATE_ELEM, {:?}, {key})", self.kind);
        self.check_size(value.len(), &what)?;
        // SAFETY: the key is 4 bytes, as the map's; the value is readable for the map's size, which was checked.
        let answer = unsafe { self.entry(&key, value.as_ptr()).call(MAP_UPDATE) };
        answer.map(|_| ()).map_err(|error| Error::io(what(), &error, REMEDY))
    }

    /// Reads the value of a key.
    ///
    /// # Errors
    /// Where there is none.
    pub fn get(&self, key: u32) -> Result<Vec<u8>, Error> {
        // The kernel rounds the size of values up to 8 bytes in some maps.
        let mut value = vec![0_u8; self.value_size.next_multiple_of(8)];
        // SAFETY: the key is 4 bytes, as the map's; the value is writable for the map's size.
        let answer = unsafe { self.entry(&key, value.as_mut_ptr()).call(MAP_LOOKUP) };
        let what = || format!("bpf(BPF_MAP_LOOKUP_ELEM, {:?}, {key})", self.kind);
        answer.map_err(|error| Error::io(what(), &error, REMEDY))?;
        value.truncate(self.value_size);
        Ok(value)
    }

    fn check_size(&self, size: usize, what: &dyn Fn() -> String) -> Result<(), Error> {
        if size == self.value_size {
            return Ok(());
        }
        let why = format!("a value of {size} bytes where the map has {}", self.value_size);
        Err(Error::bad_input(what(), why, "report this"))
    }

    /// The kernel's number of it, by which tracepoints and thread names speak of it.
    ///
    /// # Errors
    /// Where the kernel is too old to say so.
    pub fn id(&self) -> Result<u32, Error> {
        // bpf_map_info begins with the type and the number.
        let mut info = [0_u32; 2];
        let attributes = Attributes::new()
            .word(0, self.descriptor.as_raw_fd() as u32)
            .word(4, size_of_val(&info) as u32)
            .long(8, info.as_mut_ptr() as u64);
        // SAFETY: `info` is writable for the stated length.
        let answer = unsafe { attributes.call(INFO_BY_DESCRIPTOR) };
        answer.map_err(|error| Error::io("bpf(BPF_OBJ_GET_INFO_BY_FD)", &error, REMEDY))?;
        Ok(info[1])
    }

    /// What a program loads to name this map.
    #[must_use]
    pub fn number(&self) -> i32 {
        self.descriptor.as_raw_fd()
    }
}

/// A program that the kernel has checked and taken.
#[derive(Debug)]
pub struct Program {
    descriptor: OwnedFd,
}

impl Program {
    /// Has the kernel check and take these instructions. The maps that they name stay while the program does.
    ///
    /// # Errors
    /// Without the rights; where the verifier refuses, with the end of what it says.
    pub fn load(kind: ProgramKind, code: &[Instruction]) -> Result<Program, Error> {
        let bytes: Vec<u8> = code.iter().flat_map(|one| one.bytes()).collect();
        let first = Program::try_load(kind, &bytes, &mut []);
        let error = match first {
            Ok(number) => return descriptor(Ok(number), "").map(|descriptor| Program { descriptor }),
            Err(error) => error,
        };
        let what = format!("bpf(BPF_PROG_LOAD, {kind:?}, {} instructions)", code.len());
        // The verifier refuses what it takes from those who have the right.
        let by_right = error.raw_os_error() == Some(libc::EACCES) && !may_compare_addresses();
        if by_right || !matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EACCES)) {
            return Err(Error::io(what, &error, REMEDY));
        }
        // Once more with room for what the verifier says.
        let mut log = vec![0_u8; 1 << 20];
        if let Ok(number) = Program::try_load(kind, &bytes, &mut log) {
            return descriptor(Ok(number), "").map(|descriptor| Program { descriptor });
        }
        let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
        let text = String::from_utf8_lossy(&log[..end]);
        let lines: Vec<&str> = text.lines().collect();
        let last = lines[lines.len().saturating_sub(6)..].join(" | ");
        if last.is_empty() {
            return Err(Error::io(what, &error, REMEDY));
        }
        Err(Error::unexpected(
            what,
            format!("the verifier refuses: {last}"),
            "report this with the kernel's release",
        ))
    }

    fn try_load(kind: ProgramKind, bytes: &[u8], log: &mut [u8]) -> std::io::Result<i32> {
        let number = match kind {
            ProgramKind::Xdp => 6,
            ProgramKind::RawTracepoint => 17,
        };
        let mut attributes = Attributes::new()
            .word(0, number)
            .word(4, (bytes.len() / 8) as u32)
            .long(8, bytes.as_ptr() as u64)
            .long(16, LICENSE.as_ptr() as u64);
        if !log.is_empty() {
            attributes = attributes.word(24, 1).word(28, log.len() as u32).long(32, log.as_mut_ptr() as u64);
        }
        // SAFETY: the instructions and the license are readable, the log is writable, for the stated lengths.
        unsafe { attributes.call(PROGRAM_LOAD) }
    }

    /// What an XDP program answers to this packet, of 14 bytes at the least: the kernel runs it, and nothing is received or sent.
    ///
    /// # Errors
    /// Where the kernel does not run it.
    pub fn answer_to(&self, packet: &[u8]) -> Result<u32, Error> {
        let mut attributes = Attributes::new()
            .word(0, self.descriptor.as_raw_fd() as u32)
            .word(8, packet.len() as u32)
            .long(16, packet.as_ptr() as u64)
            .word(32, 1);
        // SAFETY: the packet is readable for its length; the answer is written into the attributes themselves.
        let answer = unsafe { attributes.change(TEST_RUN) };
        answer.map_err(|error| Error::io("bpf(BPF_PROG_TEST_RUN)", &error, REMEDY))?;
        Ok((attributes.0[0].to_ne_bytes())
            .get(4..8)
            .map_or(0, |answer| u32::from_ne_bytes(answer.try_into().unwrap_or_default())))
    }

    /// Has an XDP program look at each packet that this device of the calling thread's namespace receives: in its driver, or
    /// behind it where the driver has no place for that.
    ///
    /// # Errors
    /// `EBUSY` where the device has such a program already.
    pub fn attach_xdp(&self, device: &str) -> Result<(XdpMode, Link), Error> {
        match self.attach_in(device, XdpMode::Driver) {
            Err(error) if matches!(error.errno(), Some(libc::EOPNOTSUPP | libc::EINVAL | libc::ERANGE)) => {
                self.attach_in(device, XdpMode::Generic).map(|link| (XdpMode::Generic, link))
            }
            attached => attached.map(|link| (XdpMode::Driver, link)),
        }
    }

    fn attach_in(&self, device: &str, mode: XdpMode) -> Result<Link, Error> {
        let index = interface_index(device)?;
        let flag = match mode {
            XdpMode::Driver => 1 << 2,
            XdpMode::Generic => 1 << 1,
        };
        let attributes = Attributes::new()
            .word(0, self.descriptor.as_raw_fd() as u32)
            .word(4, index)
            .word(8, ATTACH_XDP)
            .word(12, flag);
        // SAFETY: this command follows no addresses.
        let answer = unsafe { attributes.call(LINK_CREATE) };
        let what = format!("bpf(BPF_LINK_CREATE) of {device}, {mode:?}");
        match answer {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => Err(Error::os(
                what,
                libc::EBUSY,
                "another program looks at its packets already (XDP): end that one first",
            )),
            answer => descriptor(answer, what).map(|descriptor| Link { _descriptor: descriptor }),
        }
    }

    /// Has a program called at a tracepoint of the kernel, in all namespaces.
    ///
    /// # Errors
    /// Where there is no such tracepoint, or the rights are missing.
    pub fn attach_tracepoint(&self, name: &std::ffi::CStr) -> Result<Link, Error> {
        let attributes =
            Attributes::new().long(0, name.as_ptr() as u64).word(8, self.descriptor.as_raw_fd() as u32);
        // SAFETY: the name is zero-terminated and outlives the call.
        let answer = unsafe { attributes.call(RAW_TRACEPOINT_OPEN) };
        let what = format!("bpf(BPF_RAW_TRACEPOINT_OPEN) of {}", name.to_string_lossy());
        descriptor(answer, what).map(|descriptor| Link { _descriptor: descriptor })
    }
}

/// Whether the verifier lets programs of this process compute with addresses (CAP_PERFMON).
fn may_compare_addresses() -> bool {
    use rustix::thread::{CapabilitySet, capabilities};
    capabilities(None)
        .is_ok_and(|sets| sets.effective.intersects(CapabilitySet::PERFMON | CapabilitySet::SYS_ADMIN))
}

/// A program at work. It is taken away when this is dropped, and when the process ends.
#[derive(Debug)]
pub struct Link {
    _descriptor: OwnedFd,
}

/// The number of a device of the calling thread's namespace.
pub fn interface_index(device: &str) -> Result<u32, Error> {
    let name = std::ffi::CString::new(device).map_err(|_| {
        Error::bad_input(
            "a network device",
            "its name has a zero byte",
            "give the name as `ip link` shows it",
        )
    })?;
    // SAFETY: the name is zero-terminated.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(Error::bad_input(
            format!("network device `{device}`"),
            "there is none of this name in this network namespace",
            "give a name that `ip link` shows",
        )),
        index => Ok(index),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_set_at_their_offsets() {
        let bytes: Vec<u8> = Attributes::new()
            .word(0, 1)
            .word(4, 0x0403_0201)
            .long(8, 7)
            .0
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        assert_eq!(bytes[..4], 1_u32.to_ne_bytes());
        assert_eq!(bytes[4..8], 0x0403_0201_u32.to_ne_bytes());
        assert_eq!(bytes[8..16], 7_u64.to_ne_bytes());
    }

    #[test]
    fn a_map_keeps_values_and_a_program_is_checked() {
        let map = match Map::create(MapKind::Array, 12, 2) {
            Ok(map) => map,
            Err(error) => {
                println!("SKIPPED: {error}");
                return;
            }
        };
        assert_eq!(map.get(1).expect("there"), [0; 12]);
        map.set(1, &[3; 12]).expect("writable");
        assert_eq!(map.get(1).expect("there"), [3; 12]);
        assert!(map.get(2).is_err() && map.set(1, &[3; 11]).expect_err("its size").is_bad_input());
        assert!(map.id().expect("it has one") > 0);
        let mut code = Assembler::default();
        code.set(Register::R0, 2);
        code.exit();
        let code = code.finish().expect("no open label");
        let program = Program::load(ProgramKind::Xdp, &code).expect("a harmless program");
        assert_eq!(program.answer_to(&[0; 60]).expect("runs"), 2);
        let error = Program::load(ProgramKind::Xdp, &code[1..]).expect_err("R0 is never set");
        assert!(error.to_string().contains("verifier"), "{error}");
    }

    #[test]
    fn a_device_that_is_not_there_is_bad_input() {
        assert!(interface_index("no-such-device").expect_err("none").is_bad_input());
        assert!(interface_index("zero\0byte").expect_err("none").is_bad_input());
    }
}
