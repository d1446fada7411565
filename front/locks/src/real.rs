//! The functions that stand behind ours.

use core::ffi::{c_char, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// A function of the C library (or of another preloaded library that stands behind this one). It holds no address of its name: that would be
/// one more word for the dynamic linker to fill in, in every process.
pub(crate) struct Real {
    /// Where its name begins in [`NAMES`].
    name: u16,
    /// Where its symbol version begins there; 0, where no version begins: the newest.
    version: u16,
    function: AtomicPtr<c_void>,
}

impl Real {
    const fn new(name: usize, version: usize) -> Real {
        assert!(name <= u16::MAX as usize && version <= u16::MAX as usize);
        Real { name: name as u16, version: version as u16, function: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Its address; null where the C library has no such function.
    #[inline]
    pub(crate) fn address(&self) -> *mut c_void {
        let known = self.function.load(Ordering::Relaxed);
        if known.is_null() { self.find() } else { known }
    }

    /// Looks it up: at the library's start for all, earlier for those that are called before. The look-up takes no lock
    /// of those traced here and allocates nothing when it finds the name.
    #[cold]
    pub(crate) fn find(&self) -> *mut c_void {
        // SAFETY: errno is this thread's own.
        let errno = unsafe { *libc::__errno_location() };
        let text = |start: u16| NAMES[usize::from(start)..].as_ptr().cast::<c_char>();
        // SAFETY: both places are starts of texts that end with zero.
        let found = unsafe {
            match self.version {
                0 => libc::dlsym(libc::RTLD_NEXT, text(self.name)),
                version => libc::dlvsym(libc::RTLD_NEXT, text(self.name), text(version)),
            }
        };
        self.function.store(found, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = errno };
        found
    }
}

/// Where the text begins that has `before` others before it.
const fn start_of(texts: &[u8], before: usize) -> usize {
    let (mut at, mut seen) = (0, 0);
    while seen < before {
        if texts[at] == 0 {
            seen += 1;
        }
        at += 1;
    }
    at
}

/// Names the real functions, each with its symbol version where glibc has two of them on x86-64, and looks them all up.
macro_rules! reals {
    ($($(#[$when:meta])? $real:ident = $name:literal $(of $version:literal)?;)+) => {
        /// All names, each with its version behind it.
        const NAMES: &[u8] = concat!($($name, "\0" $(, $version)?, "\0",)+).as_bytes();

        #[allow(non_camel_case_types, clippy::upper_case_acronyms, dead_code)]
        enum Place {
            $($real,)+
        }

        $(
            $(#[$when])?
            pub(crate) static $real: Real = {
                const NAME: usize = start_of(NAMES, 2 * Place::$real as usize);
                const VERSION: usize = NAME + $name.len() + 1;
                let is_one = NAMES[VERSION] == 0 || !cfg!(target_arch = "x86_64");
                Real::new(NAME, if is_one { 0 } else { VERSION })
            };
        )+

        /// Looks all of them up.
        pub(crate) fn find_all() {
            $(
                $(#[$when])?
                $real.address();
            )+
        }
    };
}

reals! {
    MUTEX_LOCK = "pthread_mutex_lock";
    MUTEX_TRYLOCK = "pthread_mutex_trylock";
    MUTEX_TIMEDLOCK = "pthread_mutex_timedlock";
    MUTEX_CLOCKLOCK = "pthread_mutex_clocklock";
    MUTEX_UNLOCK = "pthread_mutex_unlock";
    MTX_LOCK = "mtx_lock";
    MTX_TRYLOCK = "mtx_trylock";
    MTX_TIMEDLOCK = "mtx_timedlock";
    MTX_UNLOCK = "mtx_unlock";
    RDLOCK = "pthread_rwlock_rdlock";
    TRYRDLOCK = "pthread_rwlock_tryrdlock";
    TIMEDRDLOCK = "pthread_rwlock_timedrdlock";
    CLOCKRDLOCK = "pthread_rwlock_clockrdlock";
    WRLOCK = "pthread_rwlock_wrlock";
    TRYWRLOCK = "pthread_rwlock_trywrlock";
    TIMEDWRLOCK = "pthread_rwlock_timedwrlock";
    CLOCKWRLOCK = "pthread_rwlock_clockwrlock";
    RWLOCK_UNLOCK = "pthread_rwlock_unlock";
    SPIN_LOCK = "pthread_spin_lock";
    SPIN_TRYLOCK = "pthread_spin_trylock";
    SPIN_UNLOCK = "pthread_spin_unlock";
    COND_CLOCKWAIT = "pthread_cond_clockwait";
    CND_WAIT = "cnd_wait";
    CND_TIMEDWAIT = "cnd_timedwait";
    PTHREAD_CREATE = "pthread_create";
    THRD_CREATE = "thrd_create";
    POSIX_SPAWN = "posix_spawn";
    POSIX_SPAWNP = "posix_spawnp";
    SYSTEM = "system";
    POPEN = "popen";
    EXECVE = "execve";
    EXECV = "execv";
    EXECVP = "execvp";
    EXECVPE = "execvpe";
    EXECL = "execl";
    EXECLP = "execlp";
    EXECLE = "execle";
    FEXECVE = "fexecve";
    EXECVEAT = "execveat";
    #[cfg(any(versioned_conditions, not(target_arch = "x86_64")))]
    COND_WAIT = "pthread_cond_wait" of "GLIBC_2.3.2";
    #[cfg(any(versioned_conditions, not(target_arch = "x86_64")))]
    COND_TIMEDWAIT = "pthread_cond_timedwait" of "GLIBC_2.3.2";
    #[cfg(versioned_conditions)]
    OLD_COND_WAIT = "pthread_cond_wait" of "GLIBC_2.2.5";
    #[cfg(versioned_conditions)]
    OLD_COND_TIMEDWAIT = "pthread_cond_timedwait" of "GLIBC_2.2.5";
}

/// What a wrapper returns where the C library lacks the function: no program can have been linked with it there.
pub(crate) const ABSENT: c_int = libc::ENOSYS;

/// Registers a clean-up on the stack of its caller, as C's `pthread_cleanup_push` without exceptions does. The C library
/// runs it when a cancellation or `pthread_exit` leaves that frame, so that no frame of ours needs a destructor.
#[repr(C)]
pub(crate) struct CleanupBuffer {
    routine: Option<unsafe extern "C" fn(*mut c_void)>,
    argument: *mut c_void,
    cancel_type: c_int,
    previous: *mut CleanupBuffer,
}

impl CleanupBuffer {
    pub(crate) const fn empty() -> CleanupBuffer {
        CleanupBuffer { routine: None, argument: ptr::null_mut(), cancel_type: 0, previous: ptr::null_mut() }
    }
}

unsafe extern "C" {
    #[link_name = "_pthread_cleanup_push"]
    pub(crate) fn cleanup_push(
        buffer: *mut CleanupBuffer,
        routine: unsafe extern "C" fn(*mut c_void),
        argument: *mut c_void,
    );
    #[link_name = "_pthread_cleanup_pop"]
    pub(crate) fn cleanup_pop(buffer: *mut CleanupBuffer, execute: c_int);
}
