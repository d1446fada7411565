//! Settings of a network device in the calling thread's namespace.

use crate::Error;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd as _;

const REMEDY: &str = "run as root (CAP_NET_ADMIN)";
const ETHTOOL_STXCSUM: u32 = 0x17;
const ETHTOOL_STSO: u32 = 0x1f;
const ETHTOOL_SGSO: u32 = 0x24;
const ETHTOOL_SGRO: u32 = 0x2c;
/// `SIOCETHTOOL` and `SIOCSARP` of linux/sockios.h.
const SIOCETHTOOL: libc::c_ulong = 0x8946;
const SIOCSARP: libc::c_ulong = 0x8955;
const ATF_COM: i32 = 2;
const ATF_PERM: i32 = 4;

/// A device, and a socket of its namespace to address it by.
pub(super) struct Interface {
    name: String,
    socket: UdpSocket,
}

impl Interface {
    /// The device `name` of the calling thread's namespace.
    pub(super) fn open(name: &str) -> Result<Interface, Error> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))
            .map_err(|error| Error::io("socket(AF_INET, SOCK_DGRAM)", &error, ""))?;
        Ok(Interface { name: name.to_owned(), socket })
    }

    fn request(&self) -> libc::ifreq {
        // SAFETY: an all-zero ifreq is valid.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(self.name.bytes().take(libc::IFNAMSIZ - 1)) {
            *to = from as libc::c_char;
        }
        request
    }

    fn call(&self, what: &str, number: libc::c_ulong, request: &mut libc::ifreq) -> Result<(), Error> {
        // SAFETY: every request used here takes a pointer to an ifreq, which is valid and writable; what it points to in
        // turn outlives the call.
        if unsafe { libc::ioctl(self.socket.as_raw_fd(), number as _, request) } == 0 {
            Ok(())
        } else {
            Err(Error::last_os(format!("{what} of {}", self.name), REMEDY))
        }
    }

    /// Gives the device an address in a network of 4 (a /30).
    pub(super) fn set_address(&self, address: Ipv4Addr) -> Result<(), Error> {
        let mut request = self.request();
        request.ifr_ifru.ifru_addr = socket_address(address);
        self.call("SIOCSIFADDR", libc::SIOCSIFADDR, &mut request)?;
        request.ifr_ifru.ifru_netmask = socket_address(Ipv4Addr::new(255, 255, 255, 252));
        self.call("SIOCSIFNETMASK", libc::SIOCSIFNETMASK, &mut request)
    }

    /// Takes the device into operation.
    pub(super) fn set_up(&self) -> Result<(), Error> {
        let mut request = self.request();
        self.call("SIOCGIFFLAGS", libc::SIOCGIFFLAGS, &mut request)?;
        // SAFETY: the call before has filled the flags.
        unsafe { request.ifr_ifru.ifru_flags |= libc::IFF_UP as libc::c_short };
        self.call("SIOCSIFFLAGS", libc::SIOCSIFFLAGS, &mut request)
    }

    /// Generic receive offload: a virtual device has a NAPI of its own only with it.
    pub(super) fn set_receive_offload(&self, on: bool) -> Result<(), Error> {
        self.set_feature("ETHTOOL_SGRO", ETHTOOL_SGRO, on)
    }

    /// Segmentation offloads: packets of a device with them pass the other end's NAPI by.
    pub(super) fn set_segmentation_offload(&self, on: bool) -> Result<(), Error> {
        self.set_feature("ETHTOOL_STSO", ETHTOOL_STSO, on)?;
        self.set_feature("ETHTOOL_SGSO", ETHTOOL_SGSO, on)
    }

    /// Checksums by the device: without them the sender computes them, since nothing else does where a program takes packets
    /// from a virtual device before the protocols see them.
    pub(super) fn set_checksum_offload(&self, on: bool) -> Result<(), Error> {
        self.set_feature("ETHTOOL_STXCSUM", ETHTOOL_STXCSUM, on)
    }

    fn set_feature(&self, what: &str, command: u32, on: bool) -> Result<(), Error> {
        let mut value = [command, u32::from(on)];
        let mut request = self.request();
        request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
        self.call(what, SIOCETHTOOL, &mut request)
    }

    /// The device's hardware address.
    pub(super) fn hardware_address(&self) -> Result<[u8; 6], Error> {
        let mut request = self.request();
        self.call("SIOCGIFHWADDR", libc::SIOCGIFHWADDR, &mut request)?;
        // SAFETY: the call before has filled the address.
        let data = unsafe { request.ifr_ifru.ifru_hwaddr.sa_data };
        Ok(std::array::from_fn(|at| data[at] as u8))
    }

    /// A neighbour that need not be asked for: a flood must not drown its own address resolution.
    pub(super) fn add_neighbour(&self, address: Ipv4Addr, hardware: [u8; 6]) -> Result<(), Error> {
        // SAFETY: an all-zero arpreq is valid.
        let mut request: libc::arpreq = unsafe { std::mem::zeroed() };
        request.arp_pa = socket_address(address);
        request.arp_ha.sa_family = libc::ARPHRD_ETHER;
        for (to, from) in request.arp_ha.sa_data.iter_mut().zip(hardware) {
            *to = from as libc::c_char;
        }
        request.arp_flags = ATF_COM | ATF_PERM;
        for (to, from) in request.arp_dev.iter_mut().zip(self.name.bytes().take(15)) {
            *to = from as libc::c_char;
        }
        // SAFETY: SIOCSARP reads the arpreq, which is valid for the call's duration.
        if unsafe { libc::ioctl(self.socket.as_raw_fd(), SIOCSARP as _, &request) } == 0 {
            Ok(())
        } else {
            Err(Error::last_os(format!("SIOCSARP({address}) of {}", self.name), REMEDY))
        }
    }
}

fn socket_address(address: Ipv4Addr) -> libc::sockaddr {
    // SAFETY: an all-zero sockaddr is valid.
    let mut generic: libc::sockaddr = unsafe { std::mem::zeroed() };
    generic.sa_family = libc::AF_INET as libc::sa_family_t;
    // sockaddr_in: two bytes of port, then the address.
    for (to, from) in generic.sa_data[2..].iter_mut().zip(address.octets()) {
        *to = from as libc::c_char;
    }
    generic
}
