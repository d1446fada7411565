//! Messages to the kernel's netlink sockets, and the two requests that a pair of virtual devices needs.

use crate::Error;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};

const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
pub(super) const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_ACK: u16 = 0x4;
const NLM_F_EXCL: u16 = 0x200;
const NLM_F_CREATE: u16 = 0x400;
pub(super) const NLMSG_ERROR: u16 = 2;
const IFLA_IFNAME: u16 = 3;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
/// Bytes of `struct nlmsghdr`.
pub(super) const HEADER: usize = 16;
/// Bytes of `struct ifinfomsg`.
const IFINFOMSG: usize = 16;

/// A netlink socket of one protocol. Refusals have the remedy that it was opened with.
pub(super) struct Socket {
    descriptor: OwnedFd,
    remedy: &'static str,
}

impl Socket {
    pub(super) fn open(protocol: i32, name: &str, remedy: &'static str) -> Result<Socket, Error> {
        // SAFETY: socket takes integers.
        let socket = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol) };
        if socket < 0 {
            return Err(Error::last_os(format!("socket({name})"), remedy));
        }
        // SAFETY: the kernel just gave this descriptor to us, and nothing else owns it.
        Ok(Socket { descriptor: unsafe { OwnedFd::from_raw_fd(socket) }, remedy })
    }

    /// Sends a message, into whose header its length is written.
    pub(super) fn send(&self, mut message: Vec<u8>, what: &str) -> Result<(), Error> {
        let length = message.len() as u32;
        message[..4].copy_from_slice(&length.to_ne_bytes());
        // SAFETY: `message` is readable for its length; an unaddressed message goes to the kernel.
        let sent =
            unsafe { libc::send(self.descriptor.as_raw_fd(), message.as_ptr().cast(), message.len(), 0) };
        match sent == message.len() as isize {
            true => Ok(()),
            false => Err(Error::last_os(format!("netlink: {what}"), self.remedy)),
        }
    }

    /// The next datagram of the kernel's answer.
    pub(super) fn receive(&self, what: &str) -> Result<Vec<u8>, Error> {
        let mut answer = vec![0_u8; 65_536];
        // SAFETY: `answer` is writable for its length.
        let got =
            unsafe { libc::recv(self.descriptor.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), 0) };
        let got =
            usize::try_from(got).map_err(|_| Error::last_os(format!("netlink: {what}"), self.remedy))?;
        answer.truncate(got);
        Ok(answer)
    }
}

/// An attribute: length, type, value, padding to four bytes.
pub(super) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    // All messages here are far below 64 KiB.
    let mut bytes = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// A request that is being written.
struct Request {
    bytes: Vec<u8>,
}

impl Request {
    fn new(kind: u16, flags: u16) -> Request {
        let mut bytes = vec![0; HEADER + IFINFOMSG];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&(flags | NLM_F_REQUEST | NLM_F_ACK).to_ne_bytes());
        Request { bytes }
    }

    fn with(mut self, kind: u16, value: &[u8]) -> Request {
        self.bytes.extend(attribute(kind, value));
        self
    }

    fn send(self, what: &str) -> Result<(), Error> {
        const REMEDY: &str = "run as root (CAP_NET_ADMIN) on a kernel with virtual Ethernet devices";
        let socket = Socket::open(libc::NETLINK_ROUTE, "NETLINK_ROUTE", REMEDY)?;
        socket.send(self.bytes, what)?;
        match acknowledged(&socket.receive(what)?) {
            Some(0) => Ok(()),
            Some(errno) => Err(Error::os(format!("netlink: {what}"), errno, REMEDY)),
            None => {
                Err(Error::unexpected(format!("netlink: {what}"), "an answer of another kind", "report this"))
            }
        }
    }
}

/// A name, as the kernel takes it.
fn text(name: &str) -> Vec<u8> {
    [name.as_bytes(), &[0]].concat()
}

/// The error number of an acknowledgement; 0: carried out.
fn acknowledged(answer: &[u8]) -> Option<i32> {
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    let code = i32::from_ne_bytes(answer.get(HEADER..HEADER + 4)?.try_into().ok()?);
    (kind == NLMSG_ERROR).then_some(-code)
}

/// Makes a pair of virtual Ethernet devices: `name` in the calling thread's namespace, `peer` in the one of this
/// descriptor.
pub(crate) fn create_pair(name: &str, peer: &str, peer_namespace: RawFd) -> Result<(), Error> {
    let there = attribute(IFLA_NET_NS_FD, &peer_namespace.to_ne_bytes());
    let other_end = [vec![0; IFINFOMSG], attribute(IFLA_IFNAME, &text(peer)), there].concat();
    let data = attribute(IFLA_INFO_DATA, &attribute(VETH_INFO_PEER, &other_end));
    let request = Request::new(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL)
        .with(IFLA_IFNAME, &text(name))
        .with(IFLA_LINKINFO, &[attribute(IFLA_INFO_KIND, b"veth"), data].concat());
    request.send(&format!("new pair {name}, {peer}"))
}

/// Removes a device of the calling thread's namespace, and the other end of its pair. Says whether there was one.
pub(crate) fn delete(name: &str) -> Result<bool, Error> {
    match Request::new(RTM_DELLINK, 0).with(IFLA_IFNAME, &text(name)).send(&format!("remove {name}")) {
        Ok(()) => Ok(true),
        Err(error) if error.errno() == Some(libc::ENODEV) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::super::namespace;
    use super::*;

    #[test]
    fn attributes_are_padded_and_nested() {
        let request = Request::new(RTM_NEWLINK, 0).with(7, &attribute(9, b"abc"));
        let inner = [7_u16.to_ne_bytes(), 9_u16.to_ne_bytes()].concat();
        let outer = [12_u16.to_ne_bytes(), 7_u16.to_ne_bytes()].concat();
        assert_eq!(request.bytes[HEADER + IFINFOMSG..], [outer, inner, b"abc\0".to_vec()].concat());
    }

    #[test]
    fn an_acknowledgement_carries_the_error() {
        let mut answer = vec![0_u8; 36];
        answer[4..6].copy_from_slice(&NLMSG_ERROR.to_ne_bytes());
        assert_eq!(acknowledged(&answer), Some(0));
        answer[HEADER..HEADER + 4].copy_from_slice(&(-libc::EPERM).to_ne_bytes());
        assert_eq!(acknowledged(&answer), Some(libc::EPERM));
        assert_eq!(acknowledged(&answer[..10]), None);
        assert_eq!(acknowledged(&[]), None);
    }

    #[test]
    fn a_pair_is_made_between_two_namespaces_and_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let [first, second] = ["a", "b"].map(|name| folder.path().join(name));
        for path in [&first, &second] {
            if let Err(error) = namespace::create(path) {
                println!("SKIPPED: {error}");
                return;
            }
        }
        let devices = |path| {
            let mut names = namespace::inside_with_sysfs(path, || {
                Ok::<_, Error>(crate::machine::names_in("/sys/class/net"))
            })
            .expect("enters");
            names.sort();
            names
        };
        let peer = namespace::open(&second).expect("readable").expect("a namespace");
        let make = || namespace::inside(&first, || create_pair("hta", "htb", peer.as_raw_fd()));
        let made = make();
        if let Err(error) = &made {
            println!("SKIPPED: {error}");
        } else {
            assert_eq!((devices(&first), devices(&second)), (names(&["hta", "lo"]), names(&["htb", "lo"])));
            assert_eq!(make().expect_err("they exist").errno(), Some(libc::EEXIST));
            assert!(namespace::inside(&second, || delete("htb")).expect("removes"));
            assert!(!namespace::inside(&first, || delete("hta")).expect("gone with its peer"));
            assert_eq!(devices(&first), ["lo"]);
        }
        for path in [&first, &second] {
            namespace::remove(path).expect("removes");
        }
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }
}
