//! The distributions of which values are drawn.

use std::f64::consts::TAU;

use toml::Value;

use super::{MOST_VALUES, label};
use crate::error::{Problem, Problems, show};
use crate::file::{self, Between};
use crate::path::join;
use crate::units::{Dimension, PACKETS, RATE, SIZE, TIME};

/// Where a value comes from.
#[derive(Clone, Debug)]
pub(super) enum Distribution {
    /// One of these values; each has the sum of the weights up to its own.
    Choice(Vec<(Value, f64)>),
    /// A number between two others.
    Range { unit: Unit, spread: Spread, min: f64, max: f64 },
}

/// How numbers are spread between the smallest and the largest.
#[derive(Clone, Copy, Debug)]
pub(super) enum Spread {
    Uniform,
    LogUniform,
    LogNormal { median: f64, sigma: f64 },
}

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Unit {
    Quantity(&'static Dimension),
    Whole,
    Fraction,
}

impl Distribution {
    /// Reads a checked distribution at `here`.
    pub(super) fn new(drawn: file::Drawn, here: &str) -> Result<Self, Problems> {
        match drawn {
            file::Drawn::Constant(value) => Ok(Self::Choice(vec![(value, 1.0)])),
            file::Drawn::From(file::Distribution::Choice(choice)) => weighted(choice, here),
            file::Drawn::From(file::Distribution::Uniform(ends)) => range(&ends, Spread::Uniform, here),
            file::Drawn::From(file::Distribution::LogUniform(ends)) => {
                positive(range(&ends, Spread::LogUniform, here)?, here)
            }
            file::Drawn::From(file::Distribution::LogNormal(keys)) => {
                let (median, sigma) = (keys.median, keys.sigma);
                let lower = range(&Between { min: keys.min.clone(), max: median.clone() }, Spread::Uniform, here)?;
                range(&Between { min: median, max: keys.max.clone() }, Spread::Uniform, here)?;
                let Self::Range { max: median, .. } = lower else { unreachable!("a range") };
                let ends = Between { min: keys.min, max: keys.max };
                positive(range(&ends, Spread::LogNormal { median, sigma }, here)?, here)
            }
        }
    }

    /// The value, and its label, for a uniform number in (0, 1): the inverse of the distribution function.
    pub(super) fn draw(&self, uniform: f64) -> (Value, String) {
        match self {
            Self::Choice(values) => {
                let total = values.last().map_or(1.0, |(_, sum)| *sum);
                let found = values.iter().position(|(_, sum)| uniform * total < *sum).unwrap_or(values.len() - 1);
                (values[found].0.clone(), label(&values[found].0, found))
            }
            Self::Range { unit, spread, min, max } => {
                let number = match *spread {
                    Spread::Uniform => min + uniform * (max - min),
                    Spread::LogUniform => min * libm::exp(uniform * libm::log(max / min)),
                    Spread::LogNormal { median, sigma } => median * libm::exp(sigma * normal(uniform)),
                };
                unit.value(number.clamp(*min, *max))
            }
        }
    }

    /// The values that a choice can give; the smallest and the largest number.
    pub(super) fn extremes(&self) -> Vec<(Value, String)> {
        match self {
            Self::Choice(values) => {
                let each = |(number, (value, _)): (usize, &(Value, f64))| (value.clone(), label(value, number));
                values.iter().enumerate().map(each).collect()
            }
            Self::Range { unit, min, max, .. } => vec![unit.value(*min), unit.value(*max)],
        }
    }
}

impl Unit {
    /// A number as a value of the file.
    fn value(self, number: f64) -> (Value, String) {
        let value = match self {
            // Numbers are read from texts below 2^53 base units.
            Self::Quantity(dimension) => Value::String(dimension.display(number.round() as u64)),
            Self::Whole => Value::Integer(number.round() as i64),
            Self::Fraction => Value::Float(number),
        };
        let label = label(&value, 0);
        (value, label)
    }

    /// The number of a value in this unit, if it has one.
    fn number(self, value: &Value) -> Option<f64> {
        let number = match (self, value) {
            (Self::Quantity(dimension), Value::String(text)) => dimension.parse(text).ok()? as f64,
            (Self::Whole | Self::Fraction, Value::Integer(number)) => *number as f64,
            (Self::Fraction, Value::Float(number)) => *number,
            _ => return None,
        };
        // Larger numbers would be rounded.
        (number.abs() < (1_u64 << 53) as f64).then_some(number)
    }
}

fn weighted(choice: file::Choice, here: &str) -> Result<Distribution, Problems> {
    let count = choice.values.len();
    if count > MOST_VALUES {
        let (found, allowed) = (format!("{count} values"), format!("at most {MOST_VALUES}"));
        return Err(Problem::new(join(here, "values"), found, allowed).into());
    }
    let weights = choice.weights.unwrap_or_else(|| vec![1.0; count]);
    if weights.len() != count {
        let (found, allowed) = (format!("{} weights", weights.len()), format!("{count}, one for each value"));
        return Err(Problem::new(join(here, "weights"), found, allowed).into());
    }
    if let Some(wrong) = weights.iter().find(|weight| !(0.0..=1e9).contains(*weight)) {
        return Err(Problem::new(join(here, "weights"), wrong.to_string(), "numbers from 0 to 1e9").into());
    }
    let mut sum = 0.0;
    let mut values = Vec::new();
    for (value, weight) in choice.values.into_iter().zip(weights) {
        if weight > 0.0 {
            sum += weight;
            values.push((value, sum));
        }
    }
    if values.is_empty() {
        return Err(Problem::new(join(here, "weights"), "no weight above 0", "at least one").into());
    }
    Ok(Distribution::Choice(values))
}

fn range(ends: &Between, spread: Spread, here: &str) -> Result<Distribution, Problems> {
    let units = [
        Unit::Quantity(&RATE),
        Unit::Quantity(&TIME),
        Unit::Quantity(&SIZE),
        Unit::Quantity(&PACKETS),
        Unit::Whole,
        Unit::Fraction,
    ];
    let both = |unit: &Unit| Some((*unit, unit.number(&ends.min)?, unit.number(&ends.max)?));
    let found = || format!("{} to {}", show(&ends.min), show(&ends.max));
    let Some((unit, min, max)) = units.iter().find_map(both) else {
        let allowed = "two numbers, rates, times, sizes in bytes or numbers of packets";
        return Err(Problem::new(here, found(), allowed).into());
    };
    if min > max {
        return Err(Problem::new(here, found(), "the smaller value first").into());
    }
    Ok(Distribution::Range { unit, spread, min, max })
}

/// Only numbers above 0 have logarithms.
fn positive(range: Distribution, here: &str) -> Result<Distribution, Problems> {
    match &range {
        Distribution::Range { unit, min, .. } if *min <= 0.0 => {
            let found = unit.value(*min).1;
            Err(Problem::new(join(here, "min"), found, "more than 0, because its logarithm is needed").into())
        }
        _ => Ok(range),
    }
}

/// The number below which a standard normal variable lies with this probability.
///
/// The first guess is that of Abramowitz and Stegun, 26.2.23 (error below 4.5e-4); two of Newton's steps make it exact to
/// about 1e-12.
fn normal(probability: f64) -> f64 {
    let tail = probability.min(1.0 - probability);
    let t = libm::sqrt(-2.0 * libm::log(tail));
    let fraction =
        (2.515_517 + t * (0.802_853 + t * 0.010_328)) / (1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308)));
    let mut x = t - fraction;
    for _ in 0..2 {
        // The probability of a larger value, and its density.
        let above = 0.5 * libm::erfc(x / std::f64::consts::SQRT_2);
        let density = libm::exp(-0.5 * x * x) / libm::sqrt(TAU);
        x += (above - tail) / density;
    }
    if probability < 0.5 { -x } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Distribution, String> {
        let table: toml::Table = format!("drawn = {text}").parse().unwrap();
        let drawn = file::Drawn::deserialize(table["drawn"].clone()).unwrap();
        Distribution::new(drawn, "here").map_err(|problems| problems.into_error("f").to_string())
    }

    use serde::Deserialize;

    fn labels(text: &str, uniform: [f64; 3]) -> [String; 3] {
        let from = read(text).unwrap();
        uniform.map(|uniform| from.draw(uniform).1)
    }

    #[test]
    fn the_quantiles_of_the_normal_distribution_are_those_of_the_tables() {
        // Abramowitz and Stegun, table 26.5.
        for (probability, x) in
            [(0.5, 0.0), (0.841_344_746_068_543, 1.0), (0.975, 1.959_963_984_540_054), (0.001, -3.090_232_306_167_814)]
        {
            assert!((normal(probability) - x).abs() < 1e-10, "{probability}: {}", normal(probability));
        }
    }

    #[test]
    fn numbers_are_drawn_by_their_quantiles() {
        let uniform = r#"{ from = "uniform", min = "10ms", max = "30ms" }"#;
        assert_eq!(labels(uniform, [0.0, 0.25, 1.0]), ["10ms", "15ms", "30ms"]);
        let decades = r#"{ from = "loguniform", min = 1, max = 10000 }"#;
        assert_eq!(labels(decades, [0.25, 0.5, 0.75]), ["10", "100", "1000"]);
        // e^(-1) and e^1 times the median; the third is beyond the limit.
        let bell = r#"{ from = "lognormal", median = "1mbit", sigma = 1.0, min = "100kbit", max = "20mbit" }"#;
        assert_eq!(
            labels(bell, [0.158_655_253_931_457, 0.841_344_746_068_543, 0.999_9]),
            ["367879bit", "2718282bit", "20mbit"]
        );
    }

    #[test]
    fn values_are_chosen_by_their_weights() {
        let weighted = r#"{ from = "choice", values = ["128kb", "256kb", "1mb"], weights = [2, 2, 0] }"#;
        assert_eq!(labels(weighted, [0.1, 0.6, 0.999_999]), ["128kb", "256kb", "256kb"]);
        assert_eq!(labels(r#"{ from = "choice", values = [1, 2, 3] }"#, [0.1, 0.5, 0.9]), ["1", "2", "3"]);
        assert_eq!(labels(r#""5ms""#, [0.1, 0.5, 0.9]), ["5ms", "5ms", "5ms"]);
    }

    #[test]
    fn a_distribution_that_makes_no_sense_is_refused() {
        for (text, expected) in [
            (r#"{ from = "uniform", min = "30ms", max = "10ms" }"#, "the smaller value first"),
            (r#"{ from = "uniform", min = "30ms", max = "10mbit" }"#, "two numbers, rates"),
            (r#"{ from = "loguniform", min = 0, max = 10 }"#, "more than 0"),
            (r#"{ from = "lognormal", median = 20, sigma = 1.0, min = 1, max = 10 }"#, "the smaller value first"),
            (r#"{ from = "choice", values = [1, 2], weights = [1] }"#, "one for each value"),
            (r#"{ from = "choice", values = [1, 2], weights = [1, -1] }"#, "numbers from 0"),
            (r#"{ from = "choice", values = [1, 2], weights = [0, 0] }"#, "at least one"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
