//! From an enabled site to a buffer.

use crate::Event;

/// What the cold block of an enabled site calls: hands the event to its callback or to the session; without either it is
/// counted as unheard. `arguments` points at one 8-byte word for each of the event's arguments.
///
/// # Safety
/// `event` points to a descriptor that lives as long as its module, `arguments` to as many words as it has arguments.
pub unsafe extern "C" fn emit(event: *const Event, arguments: *const u64) {
    // SAFETY: the caller's promise.
    let described = unsafe { &*event };
    match described.callback() {
        // SAFETY: `set_callback`'s caller gave a function of this signature; the words are the caller's promise.
        Some(callback) => unsafe { callback(event, arguments, described.arguments() as u32) },
        None => described.count_unheard(),
    }
}
