//! Loads the kernel modules that the image contains, in the order in which it lists them.

use std::ffi::CStr;
use std::fs::{self, File};
use std::path::Path;

use nix::errno::Errno;
use nix::kmod::{ModuleInitFlags, finit_module};

use super::InitError;

const DIRECTORY: &str = "/lib/guest-modules";
const ORDER: &str = "/lib/guest-modules/order";
const NO_PARAMETERS: &CStr = c"";

/// Whether this is an image with modules to load.
pub(super) fn are_here() -> bool {
    Path::new(ORDER).exists()
}

/// Loads them all. If a module has no device in this machine (`ENODEV`), a run does not need the module.
pub(super) fn load_all() -> Result<(), InitError> {
    let order = fs::read_to_string(ORDER).map_err(InitError::step("reading the list of modules"))?;
    for name in order.lines() {
        let file = File::open(Path::new(DIRECTORY).join(format!("{name}.ko")))
            .map_err(InitError::step(format!("opening module {name}")))?;
        match finit_module(file, NO_PARAMETERS, ModuleInitFlags::empty()) {
            Ok(()) | Err(Errno::EEXIST | Errno::ENODEV) => {}
            Err(error) => return Err(InitError::step(format!("loading module {name}"))(error)),
        }
    }
    Ok(())
}
