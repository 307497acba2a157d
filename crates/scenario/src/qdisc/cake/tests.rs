//! Tests of the keys, their defaults, and the arguments for `tc`.

use super::super::testing::read;
use super::*;

fn layer(keys: &str) -> (bool, i16, Cells, u16) {
    let LinkLayer { raw, overhead_bytes, cells, mpu_bytes } = read::<Cake>(keys).unwrap().link_layer;
    (raw, overhead_bytes, cells, mpu_bytes)
}

/// The arguments as words, without the values of rates and times.
fn arguments(cake: &Cake) -> String {
    let words = cake.settings().into_iter().map(|(name, setting)| match setting {
        Setting::Flag => name.to_owned(),
        Setting::Number(number) | Setting::Time(number) | Setting::Rate(number) => format!("{name} {number}"),
        Setting::Integer(number) => format!("{name} {number}"),
        other => unreachable!("cake has no {other:?}"),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// tc-cake(8) and `tc qdisc add ... cake help`, where a star marks defaults.
#[test]
fn defaults_are_those_of_tc() {
    let cake = read::<Cake>("").unwrap();
    assert_eq!(cake, Cake::default());
    let expected = "unlimited rtt 100000000 diffserv3 triple-isolate nowash egress no-ack-filter split-gso raw noatm";
    assert_eq!(arguments(&cake), expected);
    assert_eq!((cake.interval_us(), cake.target_us()), (100_000, 5000));
}

#[test]
fn every_setting_reaches_tc() {
    let keys = r#"
        bandwidth = "8mbit"
        autorate_ingress = true
        preset = "metro"
        diffserv = "diffserv8"
        flowmode = "dual-srchost"
        nat = true
        wash = true
        ingress = true
        ack_filter = "ack-filter-aggressive"
        split_gso = false
        memlimit = "1mb"
        overhead = -10
        atm = "atm"
        mpu = 64
    "#;
    let expected = "bandwidth 8000000 autorate-ingress rtt 10000000 diffserv8 dual-srchost nat wash ingress \
                    ack-filter-aggressive no-split-gso memlimit 1048576 overhead -10 atm mpu 64";
    assert_eq!(arguments(&read::<Cake>(keys).unwrap()), expected);
}

/// The table of presets in `tc/q_cake.c`: target and interval in microseconds.
#[test]
fn presets_are_those_of_tc() {
    let expected = [
        ("datacentre", 5, 100),
        ("lan", 50, 1000),
        ("metro", 500, 10_000),
        ("regional", 1500, 30_000),
        ("internet", 5000, 100_000),
        ("oceanic", 15_000, 300_000),
        ("satellite", 50_000, 1_000_000),
        ("interplanetary", 50_000_000, 1_000_000_000),
    ];
    for (word, target_us, interval_us) in expected {
        let cake = read::<Cake>(&format!("preset = {word:?}")).unwrap();
        assert_eq!((cake.target_us(), cake.interval_us()), (target_us, interval_us), "{word}");
    }
    assert_eq!(expected.len(), Preset::ALL.len());
    let short = read::<Cake>(r#"rtt = "10us""#).unwrap();
    assert_eq!((short.target_us(), short.interval_us()), (1, 10), "a target is at least a microsecond");
}

#[test]
fn framings_add_up_and_overhead_replaces_their_sum() {
    assert_eq!(layer(""), (true, 0, Cells::None, 0));
    assert_eq!(layer(r#"framing = ["pppoe-ptm", "ether-vlan", "ether-vlan"]"#), (false, 38, Cells::Ptm, 0));
    assert_eq!(layer(r#"framing = ["ethernet"]"#), (false, 38, Cells::None, 84));
    assert_eq!(layer(r#"framing = ["docsis"]"#), (false, 18, Cells::None, 64));
    assert_eq!(layer(r#"framing = ["pppoa-llc", "conservative"]"#), (false, 48, Cells::Atm, 0));
    assert_eq!(layer("framing = [\"docsis\"]\noverhead = 20\nmpu = 0"), (false, 20, Cells::None, 0));
    assert_eq!(layer("overhead = 0"), (false, 0, Cells::None, 0));
    assert_eq!(layer("raw = true\noverhead = 4"), (true, 4, Cells::None, 0));
    assert_eq!(layer("framing = [\"via-ethernet\"]\natm = \"ptm\""), (true, 0, Cells::Ptm, 0));
}

/// `tc/q_cake.c`.
#[test]
fn overheads_of_framings_are_those_of_tc() {
    use Framing::*;
    let atm = [
        (IpoaVcmux, 8),
        (IpoaLlcsnap, 16),
        (BridgedVcmux, 24),
        (BridgedLlcsnap, 32),
        (PppoaVcmux, 10),
        (PppoaLlc, 14),
        (PppoeVcmux, 32),
        (PppoeLlcsnap, 40),
        (Conservative, 48),
    ];
    for (word, bytes) in atm {
        assert_eq!(layer(&format!("framing = [{:?}]", word.word())), (false, bytes, Cells::Atm, 0), "{word:?}");
    }
    for (word, bytes) in [(PppoePtm, 30), (BridgedPtm, 22)] {
        assert_eq!(layer(&format!("framing = [{:?}]", word.word())), (false, bytes, Cells::Ptm, 0), "{word:?}");
    }
}

/// `tc/q_cake.c`: `via-ethernet` is ignored, `raw` resets and lasts, and words for cells say nothing about the overhead.
#[test]
fn words_that_are_no_overhead_are_those_of_tc() {
    assert_eq!(layer("framing = 'via-ethernet'"), (true, 0, Cells::None, 0));
    assert_eq!(layer("framing = 'ptm'"), (true, 0, Cells::Ptm, 0));
    assert_eq!(layer("framing = ['pppoe-ptm', 'noatm']"), (false, 30, Cells::None, 0));
    assert_eq!(layer("framing = ['noatm', 'pppoe-ptm']"), (false, 30, Cells::Ptm, 0));
    assert_eq!(layer("framing = ['docsis', 'raw']"), (true, 0, Cells::None, 64));
    assert_eq!(layer("framing = ['raw', 'ether-vlan', 'atm']"), (true, 4, Cells::Atm, 0));
    assert_eq!(layer("framing = ['pppoe-ptm', 'conservative']"), (false, 48, Cells::Atm, 0));
    assert_eq!(layer("framing = ['conservative', 'ether-vlan', 'ether-vlan']"), (false, 56, Cells::Atm, 0));
}

#[test]
fn one_word_needs_no_brackets_and_may_be_the_overhead() {
    let docsis = layer("framing = ['docsis']");
    assert_eq!(docsis, (false, 18, Cells::None, 64));
    for keys in ["framing = 'docsis'", "overhead = 'docsis'", "framing = 'docsis'\nraw = false"] {
        assert_eq!(layer(keys), docsis, "{keys}");
    }
    for word in Framing::ALL.map(Framing::word) {
        assert_eq!(layer(&format!("overhead = '{word}'")), layer(&format!("framing = ['{word}']")), "{word}");
    }
    assert_eq!(layer("framing = 'ether-vlan'\noverhead = 'docsis'"), (false, 22, Cells::None, 64));
    assert_eq!(layer("overhead = 'raw'"), layer(""));
    assert_eq!(layer("framing = 'docsis'\noverhead = 22"), (false, 22, Cells::None, 64));
    assert_eq!(layer("overhead = 'docsis'\nmpu = 0\natm = 'ptm'"), (false, 18, Cells::Ptm, 0));
}

#[test]
fn contradictions_are_refused() {
    assert!(read::<Cake>("rtt = \"1ms\"\npreset = \"lan\"").unwrap_err().contains("one of the two"));
    let words = ["\"pppoe-llcsnap\""; 7].join(", ");
    assert!(read::<Cake>(&format!("framing = [{words}]")).unwrap_err().contains("more than 256"));
}

/// `cake_reconfigure`: four round-trip times at the rate, at least 4 MiB, at most 10240 packets of 1514 bytes.
#[test]
fn the_limit_depends_on_bandwidth_and_rtt() {
    let limit = |keys: &str| read::<Cake>(keys).unwrap().limit();
    assert_eq!(limit(""), Limit::Bytes(15_503_360));
    assert_eq!(limit(r#"bandwidth = "10mbit""#), Limit::Bytes(4 << 20));
    assert_eq!(limit(r#"bandwidth = "100mbit""#), Limit::Bytes(5_000_000));
    assert_eq!(limit(r#"bandwidth = "1gbit""#), Limit::Bytes(15_503_360));
    assert_eq!(limit("memlimit = \"32mb\""), Limit::Bytes(32 << 20));
}

#[test]
fn only_a_shaper_that_counts_whole_frames_bounds_the_rate() {
    let rate = |keys: &str| read::<Cake>(keys).unwrap().shaper().map(|shaper| shaper.rate_bps);
    assert_eq!(rate(""), None);
    assert_eq!(rate(r#"bandwidth = "8mbit""#), Some(8_000_000));
    assert_eq!(rate("bandwidth = \"8mbit\"\noverhead = 14"), Some(8_000_000));
    assert_eq!(rate("bandwidth = \"8mbit\"\noverhead = 13"), None);
    assert_eq!(rate("bandwidth = \"8mbit\"\nautorate_ingress = true"), None);
}

#[test]
fn acknowledgements_are_distinguished_from_other_drops() {
    // Without statistics of tins, every drop is one of the discipline.
    assert_eq!(Cake::counts(5, &[]), counted([5, 0, 0]));
}
