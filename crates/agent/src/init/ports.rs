//! The machine's outputs: its ports, whose other ends are files, and its terminal.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::InitError;

/// The ports' names on QEMU's command line.
pub(super) const FRAMES: &str = "bufferscope.frames";
pub(super) const OUTPUT: &str = "bufferscope.output";
pub(super) const ERRORS: &str = "bufferscope.errors";

const PORTS: &str = "/sys/class/virtio-ports";
const TERMINAL: &str = "/dev/hvc0";
/// The kernel creates a port's device some time after the driver is loaded.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The port of that name, for writing.
pub(super) fn open(name: &str) -> Result<File, InitError> {
    let port = patiently(|| device(Path::new(PORTS), name).and_then(|path| File::options().write(true).open(path)));
    port.map_err(InitError::step(format!("opening the port {name}")))
}

/// The machine's terminal.
pub(super) fn terminal() -> Result<File, InitError> {
    let terminal = patiently(|| File::options().read(true).write(true).open(TERMINAL));
    terminal.map_err(InitError::step(format!("opening {TERMINAL}")))
}

fn patiently(open: impl Fn() -> io::Result<File>) -> io::Result<File> {
    let start = Instant::now();
    loop {
        match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound && start.elapsed() < TIMEOUT => {
                sleep(Duration::from_millis(1));
            }
            result => return result,
        }
    }
}

/// The device file of the port of that name.
fn device(ports: &Path, name: &str) -> io::Result<PathBuf> {
    for port in fs::read_dir(ports)? {
        let port = port?;
        if fs::read_to_string(port.path().join("name"))?.trim_end() == name {
            return Ok(Path::new("/dev").join(port.file_name()));
        }
    }
    Err(io::ErrorKind::NotFound.into())
}
