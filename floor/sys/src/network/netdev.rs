//! What the kernel says of a device's NAPI threads by its own numbers (the netlink family `netdev`, Linux 6.8).

use super::netlink::{HEADER, NLM_F_REQUEST, NLMSG_ERROR, Socket, attribute};
use crate::Error;

const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const NETDEV_CMD_NAPI_GET: u8 = 11;
const NETDEV_A_NAPI_IFINDEX: u16 = 1;
const NETDEV_A_NAPI_PID: u16 = 4;
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_DONE: u16 = 3;
/// Bytes of `struct genlmsghdr`.
const GENERIC: usize = 4;

const REMEDY: &str = "needs Linux 6.8 or newer, which says whose thread is whose";

/// The NAPI threads of the device with this number in the calling thread's namespace, ascending; none where its NAPI is not threaded.
///
/// # Errors
/// Where the kernel does not say.
pub fn napi_threads(index: u32) -> Result<Vec<u32>, Error> {
    let socket = Socket::open(libc::NETLINK_GENERIC, "NETLINK_GENERIC", REMEDY)?;
    let name = attribute(CTRL_ATTR_FAMILY_NAME, b"netdev\0");
    let family = ask(&socket, "netdev", (GENL_ID_CTRL, 0, CTRL_CMD_GETFAMILY), &name)?;
    let family = family.iter().find_map(|of| value(of, CTRL_ATTR_FAMILY_ID)?.try_into().ok());
    let family = family
        .map(u16::from_ne_bytes)
        .ok_or_else(|| Error::unsupported("netlink: netdev".to_owned(), REMEDY))?;
    let which = attribute(NETDEV_A_NAPI_IFINDEX, &index.to_ne_bytes());
    let what = format!("NAPI of device {index}");
    let all = ask(&socket, &what, (family, NLM_F_DUMP, NETDEV_CMD_NAPI_GET), &which)?;
    let number = |of: &[u8], kind| Some(u32::from_ne_bytes(value(of, kind)?.try_into().ok()?));
    let own = all.iter().filter(|of| number(of, NETDEV_A_NAPI_IFINDEX) == Some(index));
    let mut threads: Vec<u32> = own.filter_map(|of| number(of, NETDEV_A_NAPI_PID)).collect();
    threads.sort_unstable();
    Ok(threads)
}

/// The attributes of each answer to a request of generic netlink.
fn ask(
    socket: &Socket,
    what: &str,
    (family, flags, command): (u16, u16, u8),
    attributes: &[u8],
) -> Result<Vec<Vec<u8>>, Error> {
    let mut message = vec![0; HEADER];
    message[4..6].copy_from_slice(&family.to_ne_bytes());
    message[6..8].copy_from_slice(&(flags | NLM_F_REQUEST).to_ne_bytes());
    message.extend([command, 1, 0, 0]);
    message.extend(attributes);
    socket.send(message, what)?;
    let mut answers = Vec::new();
    loop {
        let is_last = read(&socket.receive(what)?, &mut answers)
            .map_err(|errno| Error::os(format!("netlink: {what}"), errno, REMEDY))?;
        if is_last || flags == 0 {
            return Ok(answers);
        }
    }
}

/// Adds the attributes of each message of an answer; whether it was the last one. The kernel's error number where it refuses.
fn read(mut bytes: &[u8], answers: &mut Vec<Vec<u8>>) -> Result<bool, i32> {
    while let (Some(length), Some(kind)) = (number(bytes, 0), bytes.get(4..6)) {
        let Some(message) = bytes.get(..length as usize).filter(|message| message.len() >= HEADER) else {
            return Err(libc::EBADMSG);
        };
        match u16::from_ne_bytes([kind[0], kind[1]]) {
            // Both carry an error number, 0 for none.
            NLMSG_DONE | NLMSG_ERROR => {
                return match number(message, HEADER).map(u32::cast_signed) {
                    Some(0) | None => Ok(true),
                    Some(error) => Err(error.saturating_neg()),
                };
            }
            _ => answers.push(message.get(HEADER + GENERIC..).unwrap_or_default().to_vec()),
        }
        bytes = bytes.get((length as usize).next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// The value of the first attribute of this type.
fn value(mut bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(bytes.get(2..4)?.try_into().ok()?);
        let value = bytes.get(4..length)?;
        if kind == wanted {
            return Some(value);
        }
        bytes = bytes.get(length.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::super::interface::Interface;
    use super::super::{namespace, netlink, sysfs};
    use super::*;
    use crate::bpf::interface_index;
    use std::os::fd::AsRawFd as _;

    #[test]
    fn attributes_are_found_among_others() {
        let both = [attribute(7, b"abc"), attribute(9, &5_u32.to_ne_bytes())].concat();
        assert_eq!((value(&both, 7), value(&both, 9)), (Some(&b"abc"[..]), Some(&5_u32.to_ne_bytes()[..])));
        assert_eq!((value(&both, 8), value(&both[..9], 9), value(&[0; 8], 1)), (None, None, None));
    }

    #[test]
    fn an_answer_ends_with_its_last_message_or_an_error() {
        let message = |kind: u16, body: &[u8]| {
            let mut bytes = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
            bytes.extend(kind.to_ne_bytes());
            bytes.extend([0; 10]);
            bytes.extend(body);
            bytes
        };
        let one = message(30, &[&[0; GENERIC][..], &attribute(1, b"abcd")].concat());
        let read = |bytes: &[u8]| {
            let mut answers = Vec::new();
            read(bytes, &mut answers).map(|is_last| (is_last, answers.len()))
        };
        assert_eq!(read(&one), Ok((false, 1)));
        assert_eq!(read(&[one.clone(), message(NLMSG_DONE, &[0; 4])].concat()), Ok((true, 1)));
        let refused = (-libc::ENODEV).to_ne_bytes();
        assert_eq!(read(&message(NLMSG_ERROR, &refused)), Err(libc::ENODEV));
        assert_eq!(read(&one[..20]), Err(libc::EBADMSG));
    }

    /// Two namespaces have a device `hxn`, and one has `hxn-1` besides: the kernel's names of their threads begin alike.
    #[test]
    fn threads_are_those_of_the_device_and_of_no_other_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let [first, second] = ["a", "b"].map(|name| folder.path().join(name));
        for path in [&first, &second] {
            if let Err(error) = namespace::create(path) {
                println!("SKIPPED: {error}");
                return;
            }
        }
        let made = [
            (&first, "hxn", &second, "hxp"),
            (&second, "hxn", &first, "hxp"),
            (&first, "hxn-1", &second, "hxq"),
        ]
        .map(|(path, name, other, peer)| {
            let other = namespace::open(other)?.expect("it was made");
            namespace::inside(path, || {
                netlink::create_pair(name, peer, other.as_raw_fd())?;
                let interface = Interface::open(name)?;
                interface.set_receive_offload(true)?;
                interface.set_up()
            })?;
            sysfs::write(path, &sysfs::file_of(name, "threaded"), b"1")?;
            namespace::inside(path, || napi_threads(interface_index(name)?))
        });
        for path in [&first, &second] {
            namespace::remove(path).expect("removes");
        }
        let own = match made {
            [Ok(first), Ok(second), Ok(third)] => [first, second, third],
            other => {
                println!("SKIPPED: {other:?}");
                return;
            }
        };
        assert!(own.iter().all(|threads| !threads.is_empty()), "{own:?}");
        let all: std::collections::BTreeSet<u32> = own.iter().flatten().copied().collect();
        assert_eq!(all.len(), own.iter().map(Vec::len).sum::<usize>(), "{own:?}");
    }

    #[test]
    fn a_device_without_napi_has_no_threads() {
        match napi_threads(1) {
            Ok(threads) => assert_eq!(threads, [] as [u32; 0]),
            Err(error) => println!("SKIPPED: {error}"),
        }
    }
}
