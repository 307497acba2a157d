//! Disciplines from text, for the tests of their files.

use serde::de::DeserializeOwned;

use super::{Discipline, Qdisc, TXQUEUELEN};
use crate::Experiment;
use crate::error::Problems;

/// The discipline with these keys, or why they contradict each other.
pub(super) fn read<D>(keys: &str) -> Result<D, String>
where
    D: Discipline<Keys: DeserializeOwned>,
{
    let keys = toml::from_str(keys).unwrap();
    let mut problems = Problems::default();
    let resolved = D::resolve(&keys, TXQUEUELEN, "queue", &mut problems);
    let problems = problems.into_result();
    assert_eq!(resolved.is_some(), problems.is_ok());
    resolved.ok_or_else(|| problems.unwrap_err().into_error("test.toml").to_string())
}

/// The discipline of a link whose queue has these keys in an experiment file, or why the file is refused.
pub(super) fn loaded(keys: &str) -> Result<Qdisc, String> {
    let text = format!(
        r#"
        title = "A queue"
        duration = "1s"
        link = [{{ name = "l", ends = ["a", "b"], rate = "10mbit", queue = {{ {keys} }} }}]
        traffic = [{{ name = "t", kind = "tcp", from = "a", to = "b" }}]
        "#
    );
    let experiment = Experiment::parse(&text, "test.toml", &[]).map_err(|error| error.to_string())?;
    Ok(experiment.points()[0].scenario.links[0].forward.queue.clone())
}
