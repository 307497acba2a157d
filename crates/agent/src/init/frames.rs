//! The way out: a port of the virtual machine whose other end is a file.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::InitError;

const PORTS: &str = "/sys/class/virtio-ports";
/// The port's name on QEMU's command line.
const NAME: &str = "bufferscope.frames";
/// The kernel makes the port's device some time after its driver is loaded.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) fn open() -> Result<File, InitError> {
    let start = Instant::now();
    loop {
        match device(Path::new(PORTS)).and_then(|path| File::options().write(true).open(path)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && start.elapsed() < PATIENCE => {
                sleep(Duration::from_millis(1));
            }
            result => return result.map_err(InitError::step(format!("opening the port {NAME}"))),
        }
    }
}

/// The device file of the port of that name.
fn device(ports: &Path) -> io::Result<PathBuf> {
    for port in fs::read_dir(ports)? {
        let port = port?;
        if fs::read_to_string(port.path().join("name"))?.trim_end() == NAME {
            return Ok(Path::new("/dev").join(port.file_name()));
        }
    }
    Err(io::ErrorKind::NotFound.into())
}
