//! Programs in emulated hosts, as an ordinary user runs them. `tests/engines/test_shell.py` tests the same for root, at a
//! terminal.

mod common;

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{capabilities, scenario};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The number of the user and group `nobody`.
const NOBODY: u32 = 65_534;

const LINE: &str = r#"
title = "A line"
duration = "10s"
link = [{ name = "line", ends = ["h1", "h2"], rate = "10mbit", delay = "5ms" }]
traffic = [{ name = "bulk", kind = "tcp", from = "h1", to = "h2" }]
"#;

/// A directory in which that user can run the agent.
fn directory() -> Option<TempDir> {
    capabilities().filter(|found| found["privilege"] == "root" && found["qdiscs"]["htb"] == true)?;
    let directory = tempfile::tempdir().unwrap();
    common::copy_agent(&directory.path().join("agent"));
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
    Some(directory)
}

/// The agent with a request and a script for `sh`, run by an ordinary user.
fn as_nobody(directory: &Path, request: &Value, script: &str) -> Command {
    let file = directory.join("request");
    fs::write(&file, request.to_string()).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "exec 3<request; exec ./agent --shell 3 /bin/sh -c \"$1\"", "sh", script]);
    command.uid(NOBODY).gid(NOBODY).current_dir(directory).stdin(Stdio::null());
    command
}

fn build() -> Value {
    json!({ "on": "h1", "network": { "build": { "scenario": scenario(LINE) } } })
}

#[test]
fn an_ordinary_user_has_a_network_of_its_own_and_others_of_it_join() {
    let Some(directory) = directory() else { return };
    let mut holder = as_nobody(directory.path(), &build(), "id -u; grep h2 /etc/hosts; hostname; exec sleep 1000")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(holder.stdout.take().unwrap());
    let mut lines = || {
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        line
    };
    let first = lines();
    if first.is_empty() {
        let refused = String::from_utf8(holder.wait_with_output().unwrap().stderr).unwrap();
        assert!(refused.contains("refuses unprivileged user namespaces"), "{refused}");
        common::skip(refused);
        return;
    }
    assert_eq!([first, lines(), lines()], ["0\n", "10.0.0.2 h2\n", "h1\n"]);

    let join = json!({ "on": "h2", "quiet": true, "network": { "join": holder.id() } });
    let joined =
        as_nobody(directory.path(), &join, "hostname; tc qdisc show dev to-h1 | grep -c htb; exit 9").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&joined.stdout), "h2\n1\n");
    assert_eq!(joined.status.code(), Some(9));

    // Other users, even root, may not join.
    let file = fs::File::open(directory.path().join("request")).unwrap();
    let refused = Command::new("/bin/sh")
        .args(["-c", "exec 3<&0; exec \"$0\" --shell 3 /bin/true"])
        .arg(directory.path().join("agent"))
        .stdin(file)
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("cannot join the network"), "{refused:?}");
    holder.kill().unwrap();
    holder.wait().unwrap();
}

#[test]
fn what_is_no_request_is_refused() {
    for nonsense in
        ["", "{", "null", r#"{"on": "h1", "network": {"build": {}}}"#, r#"{"on": "h1", "network": {"join": "x"}}"#]
    {
        let directory = tempfile::tempdir().unwrap();
        let request = directory.path().join("request");
        fs::write(&request, nonsense).unwrap();
        let refused = Command::new("/bin/sh")
            .args(["-c", "exec 3<\"$1\"; exec \"$0\" --shell 3", env!("CARGO_BIN_EXE_bufferscope-agent")])
            .arg(request)
            .output()
            .unwrap();
        assert_eq!(refused.status.code(), Some(1), "{nonsense:?}");
        assert!(String::from_utf8_lossy(&refused.stderr).starts_with("bufferscope: not a request"), "{refused:?}");
    }
}
