//! Stops the virtual machine from inside, at an exact instruction.
//!
//! A machine that is stopped from outside stops at an arbitrary point. A write to QEMU's `pvpanic` device stops the
//! machine before its next instruction. The device exists to report crashes; here it reports that the guest is ready to
//! be saved.

use std::io;

use nix::libc;

use super::InitError;

/// The device's I/O port (QEMU, `hw/misc/pvpanic-isa.c`).
const PORT: u16 = 0x505;
/// The event "the guest has crashed" (`PVPANIC_PANICKED`). With `-action panic=pause`, QEMU pauses the machine.
const STOP: u8 = 1;

/// Returns when the machine continues: at once in the machine that was saved, or later in one that was restored.
pub(super) fn pause() -> Result<(), InitError> {
    write_port(PORT, STOP).map_err(InitError::step("stopping the machine to be saved"))
}

#[allow(unsafe_code)]
fn write_port(port: u16, value: u8) -> io::Result<()> {
    allow_port(port, true)?;
    // SAFETY: this process may write to that port, and no device at that port writes to memory.
    unsafe { std::arch::asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack, preserves_flags)) };
    // As long as a process may use any port, the kernel loads the list of its ports whenever it switches to that
    // process.
    allow_port(port, false)
}

#[allow(unsafe_code)]
fn allow_port(port: u16, allowed: bool) -> io::Result<()> {
    // SAFETY: changes only which I/O ports this process may use; the kernel checks the range.
    if unsafe { libc::ioperm(port.into(), 1, allowed.into()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
