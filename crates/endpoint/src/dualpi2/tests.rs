use bufferscope_scenario::Pi2;

use super::*;
use crate::qdisc_stats::tests::{attribute, words};

const HANDLE: u32 = 0x10_0000;

/// Parameters of which none has its default.
fn unusual() -> Dualpi2 {
    Dualpi2 {
        limit_packets: 500,
        memlimit_bytes: Some(400_000),
        controller: Pi2 { target_ns: 20_000_000, tupdate_ns: 10_000_000, alpha: 100, beta: 1000 },
        coupling_factor: 4,
        step_threshold: StepThreshold::Packets(5),
        min_qlen_step: 2,
        drop_on_overload: false,
        drop_enqueue: true,
        any_ect: true,
        classic_protection_percent: 25,
        split_gso: false,
    }
}

/// The attributes as `tc -s -raw` of iproute2 would send them: numbers and units of `TCA_DUALPI2_*`.
#[test]
fn parameters_are_attributes_in_the_kernels_units() {
    let (body, _) = request(3, HANDLE, &parameters(&unusual()));
    assert_eq!(body[..TCMSG_BYTES], words(&[0, 3, HANDLE, 0, 0]));
    let attributes_of = |bytes| attributes(bytes).collect::<Result<Vec<_>, _>>().unwrap();
    let [(TCA_KIND, kind), (TCA_OPTIONS, options)] = attributes_of(&body[TCMSG_BYTES..])[..] else {
        panic!("{body:?}")
    };
    assert_eq!(kind, b"dualpi2\0");
    let word = |value: u32| value.to_ne_bytes().to_vec();
    let expected = [
        (1, word(500)),
        (2, word(400_000)),
        (3, word(20_000)),
        (4, word(10_000)),
        (5, word(100)),
        (6, word(1000)),
        (7, word(5)),
        (9, word(2)),
        (10, vec![4]),
        (11, vec![0]),
        (12, vec![1]),
        (13, vec![25]),
        (14, vec![3]),
        (15, vec![0]),
    ];
    let found: Vec<_> = attributes_of(options).into_iter().map(|(kind, value)| (kind, value.to_vec())).collect();
    assert_eq!(found, expected);
}

/// The kernel parses options strictly, which takes `NLA_F_NESTED`.
#[test]
fn the_options_are_marked_as_nested() {
    let (body, options_at) = request(3, HANDLE, &parameters(&Dualpi2::default()));
    let header = [((body.len() - options_at + 4) as u16).to_ne_bytes(), 0x8002_u16.to_ne_bytes()].concat();
    assert_eq!(body[options_at - 4..options_at], header);
}

#[test]
fn a_step_threshold_is_a_time_or_a_number_of_packets() {
    let with = |step_threshold| parameters(&Dualpi2 { step_threshold, ..Dualpi2::default() });
    let of = |parameters: Vec<Parameter>| {
        let steps = parameters.into_iter().filter(|parameter| parameter.name.starts_with("step_thresh"));
        steps.map(|parameter| (parameter.attribute, parameter.value, parameter.kept)).collect::<Vec<_>>()
    };
    assert_eq!(of(with(StepThreshold::Packets(7))), [(7, Value::Word(7), 7)]);
    assert_eq!(of(with(StepThreshold::Time(1_500_000))), [(8, Value::Word(1500), 1500)]);
    // 32 bits of nanoseconds end at 4.29 s (`convert_us_to_nsec`).
    assert_eq!(of(with(StepThreshold::Time(60 * NS_PER_S))), [(8, Value::Word(60_000_000), 4_294_967)]);
}

/// What Linux 7.3 reports with the default parameters: a weight of 41 is kept as 44 and reported as 40.
#[test]
fn the_kernel_reports_rounded_weights() {
    let defaults = [
        attribute(1, &words(&[10_000])),
        attribute(2, &words(&[30_280_000])),
        attribute(3, &words(&[15_000])),
        attribute(4, &words(&[16_000])),
        attribute(5, &words(&[40])),
        attribute(6, &words(&[818])),
        attribute(8, &words(&[1000])),
        attribute(9, &words(&[0])),
        attribute(10, &[2]),
        attribute(11, &[1]),
        attribute(12, &[0]),
        attribute(13, &[10]),
        attribute(14, &[1]),
        attribute(15, &[1]),
    ];
    let message = |options: &[Vec<u8>]| {
        [words(&[0, 3, HANDLE, 0x1_0001, 1]), attribute(TCA_KIND, NAME), attribute(TCA_OPTIONS, &options.concat())]
            .concat()
    };
    let said = |options: &[Vec<u8>]| {
        let found = reported(&message(options)).unwrap();
        compare(&parameters(&Dualpi2::default()), &found).err().map(|error| error.to_string())
    };
    assert_eq!(said(&defaults), None);
    let mut other = defaults.clone();
    other[2] = attribute(3, &words(&[16_000]));
    assert_eq!(said(&other), Some("the kernel has target (us) = 16000 where target (us) = 15000 was set".to_owned()));
    assert_eq!(
        said(&defaults[..13]),
        Some("the kernel has split_gso = nothing where split_gso = 1 was set".to_owned())
    );
    let whole = message(&defaults);
    for length in 0..whole.len() {
        let complete = reported(&whole[..length]).is_ok_and(|found| found.len() == defaults.len());
        assert!(!complete, "cut at {length} of {}", whole.len());
    }
}

#[test]
fn the_parameter_that_the_kernel_objects_to_is_found_by_its_offset() {
    let parameters = parameters(&unusual());
    let (body, options_at) = request(3, HANDLE, &parameters);
    let mut at = options_at;
    for parameter in &parameters {
        assert_eq!(at_offset(&parameters, at - options_at), Some(parameter));
        assert_eq!(at_offset(&parameters, at + 1 - options_at), None);
        at += 8; // every value fits into four bytes
    }
    assert_eq!(at, body.len());
}
