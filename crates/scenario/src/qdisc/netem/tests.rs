use super::super::TXQUEUELEN;
use super::*;

fn read(keys: &str) -> Result<Netem, String> {
    let keys: Keys = toml::from_str(keys).unwrap();
    let mut problems = Problems::default();
    let resolved = Netem::resolve(&keys, TXQUEUELEN, "queue", &mut problems);
    let problems = problems.into_result();
    assert_eq!(resolved.is_some(), problems.is_ok());
    resolved.ok_or_else(|| problems.unwrap_err().into_error("test.toml").to_string())
}

#[test]
fn the_defaults_of_what_a_key_adds_are_those_of_tc() {
    let netem = read("").unwrap();
    assert_eq!((netem.duplicate, netem.slot, netem.inner), (None, None, None));
    assert_eq!(read("duplicate = 0.5").unwrap().duplicate, Some([0.5, 0.0]));
    assert_eq!(netem.corrupt, None);
    assert_eq!(read("corrupt = 0.5").unwrap().corrupt, Some([0.5, 0.0]));
    let slot = read("slot = { min_delay = \"5ms\" }").unwrap().slot.unwrap();
    let delay = SlotDelay::Between([5_000_000, 5_000_000]);
    assert_eq!(slot, NetemSlot { delay, packets: None, bytes: None });
    let loss = |keys| read(keys).unwrap().loss.unwrap();
    assert_eq!(loss("loss = 0.5"), Loss::Random([0.5, 0.0]));
    assert_eq!(loss("state = { p13 = 0.25 }"), Loss::State([0.25, 0.75, 0.0, 1.0, 0.0]));
    assert_eq!(loss("gemodel = { p = 0.25 }"), Loss::Gemodel([0.25, 0.75, 1.0, 0.0]));
    assert_eq!(read("delay = \"1ms\"\nreorder = 0.5").unwrap().reorder.unwrap().gap, 1);
}

#[test]
fn what_tc_refuses_is_refused() {
    for (keys, expected) in [
        ("reorder = 0.5", "queue.reorder: found reorder without delay"),
        ("delay = \"1ms\"\ngap = 5", "queue.gap: found gap without reorder"),
        ("ecn = true", "queue.ecn: found ecn without loss, state or gemodel"),
        ("delay = \"1ms\"\ndistribution = \"normal\"", "queue.distribution: found distribution without jitter"),
        ("loss = 0.1\nstate = { p13 = 0.1 }", "queue.loss: found several models of loss"),
        ("duplicate_correlation = 0.5", "queue.duplicate_correlation: found duplicate_correlation without duplicate"),
        ("corrupt_correlation = 0.5", "queue.corrupt_correlation: found corrupt_correlation without corrupt"),
        ("slot = { min_delay = \"2ms\", max_delay = \"1ms\" }", "queue.slot: found a max_delay below min_delay"),
        ("slot = { packets = \"5p\" }", "queue.slot: found a slot without its delays"),
        ("slot = { distribution = \"uniform\", delay = \"1ms\", jitter = \"1ms\" }", "found the uniform distribution"),
        ("rate = \"1mbit\"\ncellsize = 5\ncelloverhead = -5", "queue.celloverhead: found cells of no size"),
    ] {
        let refusal = read(keys).unwrap_err();
        assert!(refusal.contains(expected), "{refusal}");
    }
}

#[test]
fn tc_gets_per_cent_without_the_sign() {
    let netem =
        read("delay = \"20ms\"\njitter = \"5ms\"\ncorrelation = 0.25\nloss = 0.01\nrate = \"1mbit\"\ncellsize = 48")
            .unwrap();
    let words = |wanted| netem.settings().into_iter().find(|(name, _)| *name == wanted).unwrap().1;
    assert_eq!(words("delay"), Setting::Words("20000us 5000us 25".to_owned()));
    assert_eq!(words("loss"), Setting::Words("random 1 0".to_owned()));
    let netem = read(
        "duplicate = 0.01\nduplicate_correlation = 0.5\nslot = { min_delay = \"5ms\", packets = \"5p\", bytes = \"3kb\" }",
    );
    let settings = netem.unwrap().settings();
    assert_eq!(settings[1], ("duplicate", Setting::Words("1 50".to_owned())));
    assert_eq!(settings[2], ("slot", Setting::Words("5000us 5000us packets 5 bytes 3072".to_owned())));
    let netem = read("slot = { distribution = \"pareto\", delay = \"5ms\", jitter = \"1ms\" }").unwrap();
    assert_eq!(netem.settings()[1].1, Setting::Words("distribution pareto 5000us 1000us".to_owned()));
    let netem = read("corrupt = 0.005\ncorrupt_correlation = 0.25").unwrap();
    assert_eq!(netem.settings()[1], ("corrupt", Setting::Words("0.5 25".to_owned())));
    assert_eq!(words("rate"), Setting::Words("1000000bit 0 48 0".to_owned()));
}
