//! Settings that hosts have in common.

use toml::{Table, Value};

/// Copies each key of the common `tcp` table to every listed host that does not set the key itself. (A host that is not
/// listed has the common settings anyway.)
pub(crate) fn inherit_tcp(setup: &mut Table) {
    let Some(Value::Table(common)) = setup.get("tcp").cloned() else { return };
    let hosts = setup.get_mut("host").and_then(Value::as_array_mut).into_iter().flatten();
    for host in hosts.filter_map(Value::as_table_mut) {
        let own = host.entry("tcp").or_insert_with(|| Value::Table(Table::new()));
        if let Some(own) = own.as_table_mut() {
            for (key, value) in &common {
                own.entry(key.as_str()).or_insert_with(|| value.clone());
            }
        }
    }
}
