//! Reads observations as JSON, such as the `observations` of the last line of `bufferscope-live measure --events`, from standard
//! input, and prints the verdict: `jq -c 'select(.event == "end").observations' EVENTS | cargo run --example judge`.

use std::io::Read;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    println!("{}", bufferscope_verdict::judge_json(&text)?);
    Ok(())
}
