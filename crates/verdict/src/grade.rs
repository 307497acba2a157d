//! Grades: the table that DSLReports introduced, and that Waveform and LibreQoS use.

use crate::verdict::{Grade, GradeStep, GradeTable};

const MS: i64 = 1_000_000;
/// What is graded.
const STATISTIC: &str = "the 95th percentile of the added round-trip delay under load; if it falls among the lost probes, the longest \
                         measured delay";
const STEPS: [(Grade, Option<i64>); 6] = [
    (Grade::APlus, Some(5 * MS)),
    (Grade::A, Some(30 * MS)),
    (Grade::B, Some(60 * MS)),
    (Grade::C, Some(200 * MS)),
    (Grade::D, Some(400 * MS)),
    (Grade::F, None),
];

/// The table.
pub(crate) fn table() -> GradeTable {
    let steps = STEPS.iter().map(|&(grade, below_ns)| GradeStep { grade, below_ns }).collect();
    GradeTable { statistic: STATISTIC.to_owned(), steps }
}

/// The grade of an added delay.
pub(crate) fn grade(added_ns: i64) -> Grade {
    let step = STEPS.iter().find(|step| step.1.is_none_or(|below| added_ns < below));
    step.map_or(Grade::F, |step| step.0)
}

impl Grade {
    /// As it is written: `A+`.
    pub fn name(self) -> &'static str {
        match self {
            Self::APlus => "A+",
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
            Self::D => "D",
            Self::F => "F",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_the_worse_grade() {
        let grades = [-3, 0, 4, 5, 29, 30, 59, 60, 199, 200, 399, 400, 9000].map(|ms| grade(ms * MS).name());
        assert_eq!(grades, ["A+", "A+", "A+", "A", "A", "B", "B", "C", "C", "D", "D", "F", "F"]);
    }
}
