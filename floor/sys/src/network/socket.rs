//! What the kernel counts of a socket.

use crate::Error;
use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;

/// `SO_MEMINFO` has so many words; the last one counts drops.
const WORDS: usize = 9;

/// Packets that the kernel has dropped because this socket had no room.
///
/// # Errors
/// On kernels before 4.12.
pub fn socket_drops(socket: &UdpSocket) -> Result<u32, Error> {
    let mut words = [0_u32; WORDS];
    let mut size = size_of_val(&words) as libc::socklen_t;
    // SAFETY: `words` is writable for the stated size.
    let status = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            words.as_mut_ptr().cast(),
            &mut size,
        )
    };
    if status != 0 || (size as usize) < size_of_val(&words) {
        return Err(Error::last_os("getsockopt(SO_MEMINFO)", "needs Linux 4.12 or newer"));
    }
    Ok(words[WORDS - 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_socket_counts_what_it_drops() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        assert_eq!(socket_drops(&socket).expect("counted"), 0);
        socket.connect(socket.local_addr().expect("its own")).expect("to itself");
        for _ in 0..2_000 {
            let _ = socket.send(&[0; 1_000]);
        }
        assert!(socket_drops(&socket).expect("counted") > 0);
    }
}
