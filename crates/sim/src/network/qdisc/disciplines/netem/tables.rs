//! The distributions of netem's delays: 4096 deviations from the mean each, in units of 1/8192 standard deviations, of
//! which one is drawn. They are those that iproute2 generates when it is built, and installs as `normal.dist`,
//! `pareto.dist` and `paretonormal.dist`.

use std::sync::LazyLock;

use bufferscope_scenario::Distribution;

/// Number of entries of the cumulative distribution, of which every fourth is in a table.
const ENTRIES: usize = 16_384;
const UNIT: f64 = 8192.0;

static NORMAL: LazyLock<Vec<i16>> = LazyLock::new(|| normal().into_iter().map(clamped).collect());
static PARETO: LazyLock<Vec<i16>> = LazyLock::new(|| pareto().map(clamped).collect());
static PARETO_NORMAL: LazyLock<Vec<i16>> = LazyLock::new(|| {
    // The quotient is rounded towards zero.
    normal().into_iter().zip(pareto()).map(|(normal, pareto)| clamped((normal + 3 * pareto) / 4)).collect()
});

/// The table of a distribution; `None` for the uniform one.
pub(super) fn of(distribution: Distribution) -> Option<&'static [i16]> {
    match distribution {
        Distribution::Uniform => None,
        Distribution::Normal => Some(&NORMAL),
        Distribution::Pareto => Some(&PARETO),
        Distribution::ParetoNormal => Some(&PARETO_NORMAL),
    }
}

/// The normal distribution: each entry holds the last of the points, 0.00005 apart, whose cumulative probability rounds
/// to it. The points are a running sum, with its rounding errors.
fn normal() -> Vec<i32> {
    let mut points = [0.0; ENTRIES + 1];
    let mut point = -10.0;
    while point < 10.05 {
        points[(ENTRIES as f64 * cumulative(point)).round_ties_even() as usize] = point;
        point += 0.000_05;
    }
    points[..ENTRIES].iter().step_by(4).map(|point| (point * UNIT).round_ties_even() as i32).collect()
}

/// The Pareto distribution with exponent 3, moved and scaled to mean 0 and about one standard deviation.
fn pareto() -> impl Iterator<Item = i32> {
    (1..=ENTRIES / 4).rev().map(|entry| {
        let probability = (16 * entry) as f64 / 65_536.0;
        let deviation = (1.0 / probability.powf(1.0 / 3.0) - 1.5) * (4.0 / 3.0) * UNIT;
        deviation.min(32_767.0).round_ties_even() as i32
    })
}

fn clamped(value: i32) -> i16 {
    value.clamp(i16::MIN.into(), i16::MAX.into()) as i16
}

/// The cumulative standard normal distribution, by Marsaglia's series ("Evaluating the normal distribution", 2004). Beyond
/// 4.5 standard deviations, it differs from 0 or 1 by less than an entry.
fn cumulative(x: f64) -> f64 {
    if x.abs() > 4.5 {
        return if x > 0.0 { 1.0 } else { 0.0 };
    }
    let (mut term, mut sum, mut odd) = (x, x, 1.0);
    while term.abs() > 1e-17 {
        odd += 2.0;
        term *= x * x / odd;
        sum += term;
    }
    0.5 + sum * (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some numbers of the files that iproute2 6.1 installs, and all of them where it is installed.
    #[test]
    fn the_tables_are_those_of_iproute2() {
        for (distribution, name, expected) in [
            (Distribution::Normal, "normal", [-32_768, -28_307, 0, 27_159, 28_858]),
            (Distribution::Pareto, "pareto", [-5461, -5460, -2622, 32_767, 32_767]),
            (Distribution::ParetoNormal, "paretonormal", [-12_305, -11_171, -1966, 31_365, 31_789]),
        ] {
            let table = of(distribution).unwrap();
            assert_eq!(table.len(), 4096);
            assert_eq!([0, 1, 2048, 4094, 4095].map(|entry| table[entry]), expected, "{name}");
            let installed = ["/usr/lib/tc", "/usr/lib/x86_64-linux-gnu/tc", "/lib/tc"];
            let text = |path: &&str| std::fs::read_to_string(format!("{path}/{name}.dist")).ok();
            let Some(text) = installed.iter().find_map(text) else { continue };
            let numbers = text.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace);
            let numbers: Vec<i16> = numbers.map(|number| number.parse().unwrap()).collect();
            assert_eq!(table, numbers, "{name}");
        }
        assert!(of(Distribution::Uniform).is_none());
    }
}
