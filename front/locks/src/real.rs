//! The functions that stand behind ours.

use core::ffi::{CStr, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// A function of the C library (or of another preloaded library that stands behind this one).
pub(crate) struct Real {
    name: &'static CStr,
    version: Option<&'static CStr>,
    function: AtomicPtr<c_void>,
}

impl Real {
    /// The newest function of this name.
    pub(crate) const fn new(name: &'static CStr) -> Real {
        Real { name, version: None, function: AtomicPtr::new(ptr::null_mut()) }
    }

    /// The function of this name and symbol version.
    #[cfg(versioned_conditions)]
    pub(crate) const fn versioned(name: &'static CStr, version: &'static CStr) -> Real {
        Real { name, version: Some(version), function: AtomicPtr::new(ptr::null_mut()) }
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
        let name = self.name.as_ptr();
        let found = match self.version {
            // SAFETY: both are NUL-terminated constants.
            Some(version) => unsafe { libc::dlvsym(libc::RTLD_NEXT, name, version.as_ptr()) },
            // SAFETY: as above.
            None => unsafe { libc::dlsym(libc::RTLD_NEXT, name) },
        };
        self.function.store(found, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = errno };
        found
    }
}

/// Names the real functions, and lists them for the start of the library.
macro_rules! reals {
    ($($real:ident = $name:literal;)+) => {
        $(pub(crate) static $real: Real = Real::new($name);)+
        static NEWEST: &[&Real] = &[$(&$real),+];
    };
}

reals! {
    MUTEX_LOCK = c"pthread_mutex_lock";
    MUTEX_TRYLOCK = c"pthread_mutex_trylock";
    MUTEX_TIMEDLOCK = c"pthread_mutex_timedlock";
    MUTEX_CLOCKLOCK = c"pthread_mutex_clocklock";
    MUTEX_UNLOCK = c"pthread_mutex_unlock";
    MTX_LOCK = c"mtx_lock";
    MTX_TRYLOCK = c"mtx_trylock";
    MTX_TIMEDLOCK = c"mtx_timedlock";
    MTX_UNLOCK = c"mtx_unlock";
    RDLOCK = c"pthread_rwlock_rdlock";
    TRYRDLOCK = c"pthread_rwlock_tryrdlock";
    TIMEDRDLOCK = c"pthread_rwlock_timedrdlock";
    CLOCKRDLOCK = c"pthread_rwlock_clockrdlock";
    WRLOCK = c"pthread_rwlock_wrlock";
    TRYWRLOCK = c"pthread_rwlock_trywrlock";
    TIMEDWRLOCK = c"pthread_rwlock_timedwrlock";
    CLOCKWRLOCK = c"pthread_rwlock_clockwrlock";
    RWLOCK_UNLOCK = c"pthread_rwlock_unlock";
    SPIN_LOCK = c"pthread_spin_lock";
    SPIN_TRYLOCK = c"pthread_spin_trylock";
    SPIN_UNLOCK = c"pthread_spin_unlock";
    COND_CLOCKWAIT = c"pthread_cond_clockwait";
    CND_WAIT = c"cnd_wait";
    CND_TIMEDWAIT = c"cnd_timedwait";
    PTHREAD_CREATE = c"pthread_create";
    THRD_CREATE = c"thrd_create";
    POSIX_SPAWN = c"posix_spawn";
    POSIX_SPAWNP = c"posix_spawnp";
    SYSTEM = c"system";
    POPEN = c"popen";
    EXECVE = c"execve";
    EXECV = c"execv";
    EXECVP = c"execvp";
    EXECVPE = c"execvpe";
    EXECL = c"execl";
    EXECLP = c"execlp";
    EXECLE = c"execle";
    FEXECVE = c"fexecve";
    EXECVEAT = c"execveat";
}

/// The functions that glibc has twice on x86-64.
#[cfg(versioned_conditions)]
mod versioned {
    use super::Real;
    pub(crate) static COND_WAIT: Real = Real::versioned(c"pthread_cond_wait", c"GLIBC_2.3.2");
    pub(crate) static COND_TIMEDWAIT: Real = Real::versioned(c"pthread_cond_timedwait", c"GLIBC_2.3.2");
    pub(crate) static OLD_COND_WAIT: Real = Real::versioned(c"pthread_cond_wait", c"GLIBC_2.2.5");
    pub(crate) static OLD_COND_TIMEDWAIT: Real = Real::versioned(c"pthread_cond_timedwait", c"GLIBC_2.2.5");
    pub(super) static ALL: &[&Real] = &[&COND_WAIT, &COND_TIMEDWAIT, &OLD_COND_WAIT, &OLD_COND_TIMEDWAIT];
}
#[cfg(versioned_conditions)]
pub(crate) use versioned::{COND_TIMEDWAIT, COND_WAIT, OLD_COND_TIMEDWAIT, OLD_COND_WAIT};

#[cfg(not(target_arch = "x86_64"))]
mod versioned {
    use super::Real;
    pub(crate) static COND_WAIT: Real = Real::new(c"pthread_cond_wait");
    pub(crate) static COND_TIMEDWAIT: Real = Real::new(c"pthread_cond_timedwait");
    pub(super) static ALL: &[&Real] = &[&COND_WAIT, &COND_TIMEDWAIT];
}
#[cfg(not(target_arch = "x86_64"))]
pub(crate) use versioned::{COND_TIMEDWAIT, COND_WAIT};

/// Looks all of them up.
pub(crate) fn find_all() {
    for real in NEWEST {
        real.address();
    }
    #[cfg(any(versioned_conditions, not(target_arch = "x86_64")))]
    for real in versioned::ALL {
        real.address();
    }
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
