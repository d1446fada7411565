//! The modules of this process: the executable and the shared libraries that are loaded now.

use std::ffi::CStr;

/// One loaded module, valid during the call that hands it over: the loader unloads nothing meanwhile.
#[derive(Debug)]
pub struct Module<'a> {
    /// Its name as the loader knows it; empty for the executable.
    pub name: &'a CStr,
    /// What has to be added to the addresses in its headers.
    pub base: u64,
    /// Its program headers.
    pub headers: &'a [libc::Elf64_Phdr],
}

/// Calls `visit` for each loaded module while the loader's list is locked: no module is added or unmapped before this
/// returns (glibc unmaps under the same lock that `dl_iterate_phdr` holds). `visit` must not load or unload modules.
pub fn for_each(visit: &mut dyn FnMut(&Module<'_>)) {
    struct Visitor<'v> {
        visit: &'v mut dyn FnMut(&Module<'_>),
    }
    unsafe extern "C" fn each(
        info: *mut libc::dl_phdr_info,
        _size: libc::size_t,
        data: *mut libc::c_void,
    ) -> libc::c_int {
        // SAFETY: the loader passes a valid description for the time of this call, and `data` as given below.
        let (info, visitor) = unsafe { (&*info, &mut *data.cast::<Visitor<'_>>()) };
        if info.dlpi_phdr.is_null() {
            return 0;
        }
        // SAFETY: the loader's pointer and count describe the mapped headers; the name is NUL-terminated or null.
        let (headers, name) = unsafe {
            let headers = std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum));
            (headers, if info.dlpi_name.is_null() { c"" } else { CStr::from_ptr(info.dlpi_name) })
        };
        (visitor.visit)(&Module { name, base: info.dlpi_addr, headers });
        0
    }
    let mut visitor = Visitor { visit };
    // SAFETY: `each` has the wanted signature; `visitor` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut visitor).cast()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_executable_and_the_c_library_are_listed() {
        let mut names = Vec::new();
        let here = the_executable_and_the_c_library_are_listed as *const () as u64;
        let mut covers = 0;
        for_each(&mut |module| {
            names.push(module.name.to_string_lossy().into_owned());
            covers += module
                .headers
                .iter()
                .filter(|header| header.p_type == libc::PT_LOAD)
                .filter(|header| {
                    let start = module.base.wrapping_add(header.p_vaddr);
                    (start..start + header.p_memsz).contains(&here)
                })
                .count();
        });
        assert_eq!(covers, 1, "one segment holds this function");
        assert!(names.iter().any(|name| name.contains("libc.so")), "{names:?}");
    }
}
