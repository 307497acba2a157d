//! The five sentences.

use bufferscope_verdict::input::{Direction, EndName, LinkKind, PhaseKind, Stage};

use crate::build::{MS, Test};

#[test]
fn five_sentences_say_speed_delay_place_certainty_and_cure() {
    let test = Test::new(PhaseKind::Upload, 250.0, 0.0).ladder(EndName::Client, [Some(0.0), Some(250.0), Some(250.0)]);
    let sentences = test.judge().sentences;
    assert_eq!(sentences[0], "Your connection carried 10 Mbit/s of upload; the download was not measured.");
    assert_eq!(
        sentences[1],
        "A round trip took 20 ms on the idle connection, and up to 270 ms during upload (1 in 20 took longer): grade D."
    );
    assert_eq!(sentences[2], "Upload packets wait at the router's uplink or its modem.");
    assert!(sentences[3].starts_with("The place is 9"), "{}", sentences[3]);
    assert!(sentences[3].contains("500 test packets under load and 30 answers"), "{}", sentences[3]);
    // 10 Mbit/s x 1544 / 1448 x 0.95.
    assert_eq!(
        sentences[4],
        "Turn on smart queue management (cake or fq_codel) for the upload on your router, at 10129 kbit/s."
    );
}

#[test]
fn the_cure_fits_the_place_and_the_link() {
    let cure = |test: &Test| test.judge().sentences[4].clone();
    let mut first = Test::new(PhaseKind::Upload, 100.0, 0.0).ladder(EndName::Client, [Some(100.0); 3]).stage(
        EndName::Client,
        Stage::Qdisc,
        0.0,
    );
    first.observations.ends.client.bql = Some(false);
    assert!(cure(&first).contains("ethtool -G"), "{}", cure(&first));
    first.observations.ends.client.link = LinkKind::Wifi;
    assert!(cure(&first).contains("Wi-Fi"), "{}", cure(&first));
    let own = Test::new(PhaseKind::Upload, 100.0, 0.0).ladder(EndName::Client, [Some(100.0); 3]).stage(
        EndName::Client,
        Stage::Qdisc,
        100.0,
    );
    assert!(cure(&own).contains("fq_codel"), "{}", cure(&own));
    let far = Test::new(PhaseKind::Upload, 100.0, 0.0).ladder(EndName::Client, [Some(0.0), Some(0.0), Some(100.0)]);
    assert!(cure(&far).contains("provider"), "{}", cure(&far));
    let short = Test::new(PhaseKind::Upload, 20.0, 0.0).ladder(EndName::Client, [Some(0.0), Some(20.0), Some(20.0)]);
    assert!(cure(&short).contains("nothing to do"), "{}", cure(&short));
}

#[test]
fn other_outcomes_have_their_sentences() {
    let clean = Test::new(PhaseKind::Download, 0.0, 0.0).judge().sentences;
    assert_eq!(clean[2], "No queue builds up on the way, even at full load.");
    assert_eq!(clean[4], "There is nothing to do.");
    let managed = Test::new(PhaseKind::Download, 0.0, 0.0).flow(Direction::Down, |flow, _| flow.srtt_ns = 80 * MS);
    assert!(managed.judge().sentences[2].contains("manages its queue"));
    let short =
        Test::new(PhaseKind::Download, 0.0, 0.0).flow(Direction::Down, |flow, _| flow.rwnd_limited_us = flow.busy_us);
    assert_eq!(
        short.judge().sentences[2],
        "The download did not fill your connection, so the test cannot tell how long its queues become."
    );
    let two = Test::new(PhaseKind::Upload, 250.0, 0.0).ladder(EndName::Client, [Some(0.0), Some(150.0), Some(150.0)]);
    assert_eq!(
        two.judge().sentences[2],
        "Upload packets wait at the router's uplink or its modem (60 % of the delay) and at the last link to the server (40 %)."
    );
    let nowhere = Test::new(PhaseKind::Upload, 250.0, 0.0).judge().sentences;
    assert_eq!(
        nowhere[2],
        "Upload packets wait in a queue, but the test cannot tell where between this machine and the server."
    );
    assert!(nowhere[3].starts_with("The queue is certain but its place is not"), "{}", nowhere[3]);
}
