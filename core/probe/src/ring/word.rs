//! The operations that the buffers need of a word of memory; the model checker's words have the same.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A 32-bit word that several threads use.
pub trait Word {
    /// Its value.
    fn load(&self, order: Ordering) -> u32;
    /// Sets it.
    fn store(&self, value: u32, order: Ordering);
    /// Adds with wrap-around; returns the value before. One locked instruction on x86 (`lock xadd`).
    fn add(&self, value: u32, order: Ordering) -> u32;
}

/// A 64-bit word that several threads use.
pub trait Wide {
    /// Its value.
    fn load(&self, order: Ordering) -> u64;
    /// Sets it.
    fn store(&self, value: u64, order: Ordering);
    /// Adds; returns the value before.
    fn add(&self, value: u64, order: Ordering) -> u64;
    /// A fence among words of this kind.
    fn fence(order: Ordering);
}

macro_rules! words {
    ($($kind:ident $value:ty => $word:ty $(, $fence:path)?;)*) => {$(
        impl $kind for $word {
            #[inline(always)]
            fn load(&self, order: Ordering) -> $value {
                <$word>::load(self, order)
            }
            #[inline(always)]
            fn store(&self, value: $value, order: Ordering) {
                <$word>::store(self, value, order);
            }
            #[inline(always)]
            fn add(&self, value: $value, order: Ordering) -> $value {
                self.fetch_add(value, order)
            }
            $(
                #[inline(always)]
                fn fence(order: Ordering) {
                    $fence(order);
                }
            )?
        }
    )*};
}

words! {
    Word u32 => AtomicU32;
    Wide u64 => AtomicU64, core::sync::atomic::fence;
}

#[cfg(test)]
words! {
    Word u32 => loom::sync::atomic::AtomicU32;
    Wide u64 => loom::sync::atomic::AtomicU64, loom::sync::atomic::fence;
}
