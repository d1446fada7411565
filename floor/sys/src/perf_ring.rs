//! The ring that the kernel shares with the reader of perf events.

use crate::Error;
use crate::perf_event::PerfEvent;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings as raw;

/// A mapped ring. One reader; the kernel is the only writer.
#[derive(Debug)]
pub struct PerfRing {
    base: NonNull<u8>,
    length: usize,
    data_offset: usize,
    data_size: u64,
}

// SAFETY: the mapping belongs to this value alone and is used through `&mut self`; it is bound to no thread.
unsafe impl Send for PerfRing {}

impl PerfRing {
    /// Maps a ring of at least `bytes` (rounded up to a power of two of pages) for `event`.
    ///
    /// # Errors
    /// Where the memory may not be locked, or the size is out of range.
    pub fn map(event: &PerfEvent, bytes: usize) -> Result<PerfRing, Error> {
        let page = page_size();
        let bytes_wanted = bytes.max(page);
        let too_big =
            || Error::bad_input(format!("perf ring of {bytes} bytes"), "too big", "use a smaller ring");
        let data = bytes_wanted.checked_next_power_of_two().ok_or_else(too_big)?;
        let length = data.checked_add(page).ok_or_else(too_big)?;
        // SAFETY: a fresh shared mapping chosen by the kernel; the descriptor is an open perf event.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(Error::last_os(
                format!("mmap(perf ring, {} KiB)", length / 1024),
                "raise kernel.perf_event_mlock_kb or `ulimit -l`, or use a smaller ring",
            ));
        }
        let base = NonNull::new(address.cast::<u8>())
            .ok_or_else(|| Error::unexpected("mmap(perf ring)", "address 0", ""))?;
        let header = base.cast::<raw::perf_event_mmap_page>();
        // SAFETY: the first page of the mapping holds this structure; these fields never change after mmap.
        let (offset, size) = unsafe { ((*header.as_ptr()).data_offset, (*header.as_ptr()).data_size) };
        // Kernels before 4.1 leave both at 0: then the data begins after the first page.
        let data_offset = if offset == 0 { page } else { offset as usize };
        let data_size = if size == 0 { data as u64 } else { size };
        if data_offset.checked_add(data_size as usize).is_none_or(|end| end > length) {
            return Err(Error::unexpected("mmap(perf ring)", "data area outside the mapping", ""));
        }
        Ok(PerfRing { base, length, data_offset, data_size })
    }

    /// Bytes written and not yet read.
    #[must_use]
    pub fn unread(&self) -> u64 {
        self.head().load(Ordering::Acquire).wrapping_sub(self.tail().load(Ordering::Relaxed))
    }

    /// Hands each record (type, body without the header) to `each`, then frees its room. `scratch` holds a record
    /// that wraps around the end of the ring; it grows to 64 KiB at most.
    pub fn drain(&mut self, scratch: &mut Vec<u8>, mut each: impl FnMut(u32, &[u8])) {
        self.drain_with_bits(scratch, |kind, _, body| each(kind, body));
    }

    /// The same with the bits of each record's header (`misc`) between type and body.
    pub fn drain_with_bits(&mut self, scratch: &mut Vec<u8>, mut each: impl FnMut(u32, u16, &[u8])) {
        // Acquire: pairs with the kernel's write barrier before it moves the head.
        let head = self.head().load(Ordering::Acquire);
        let mut tail = self.tail().load(Ordering::Relaxed);
        while head.wrapping_sub(tail) >= HEADER as u64 {
            let mut header = [0_u8; HEADER];
            self.copy(tail, &mut header);
            let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
            let bits = u16::from_ne_bytes([header[4], header[5]]);
            let size = u64::from(u16::from_ne_bytes([header[6], header[7]]));
            if size < HEADER as u64 || size > head.wrapping_sub(tail) {
                // The kernel never writes this; giving up the rest of the ring keeps the reader alive.
                tail = head;
                break;
            }
            scratch.resize(size as usize - HEADER, 0);
            self.copy(tail.wrapping_add(HEADER as u64), scratch);
            each(kind, bits, scratch);
            tail = tail.wrapping_add(size);
        }
        // Release: all reads of the data come before the kernel sees the room as free.
        self.tail().store(tail, Ordering::Release);
    }

    /// Copies `out.len()` bytes at ring position `position`, which must lie between tail and head.
    fn copy(&self, position: u64, out: &mut [u8]) {
        let start = (position % self.data_size) as usize;
        let first = out.len().min(self.data_size as usize - start);
        // SAFETY: `map` checked that data_offset + data_size lies inside the mapping; `start` is below data_size,
        // `first` ends at its end at most, and the rest is shorter than the ring since a record fits into it. The
        // kernel does not write between tail and head.
        unsafe {
            let data = self.base.as_ptr().add(self.data_offset);
            std::ptr::copy_nonoverlapping(data.add(start), out.as_mut_ptr(), first);
            std::ptr::copy_nonoverlapping(data, out.as_mut_ptr().add(first), out.len() - first);
        }
    }

    fn head(&self) -> &AtomicU64 {
        self.counter(std::mem::offset_of!(raw::perf_event_mmap_page, data_head))
    }

    fn tail(&self) -> &AtomicU64 {
        self.counter(std::mem::offset_of!(raw::perf_event_mmap_page, data_tail))
    }

    fn counter(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the first page holds perf_event_mmap_page; both counters are 8-byte aligned and live as long as
        // the mapping; the kernel accesses them as 64-bit words.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(offset).cast::<u64>()) }
    }
}

impl Drop for PerfRing {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping that `map` made; nothing borrows from it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.length) };
    }
}

/// Length of `struct perf_event_header`.
const HEADER: usize = 8;

/// The size of a page in bytes, as the C library has it: below valgrind the vectors that the kernel shows in `/proc` are not
/// the program's.
#[must_use]
pub fn page_size() -> usize {
    // SAFETY: the call takes a number and looks into the C library's own memory.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}
