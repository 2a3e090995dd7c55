//! DiskSim's ASCII traces, in milliseconds with a fraction. Source: `disksim_iotrace.c`.

use super::columns::{self, Tail};
use super::{Confidence, FieldNames, Format, Head, Opening, Options, Parser, TimeUnit};

pub(super) struct Disksim;

const USUAL: TimeUnit = TimeUnit::Milliseconds;

impl Format for Disksim {
    fn name(&self) -> &'static str {
        "disksim"
    }
    fn summary(&self) -> &'static str {
        "DiskSim: ms device block blocks flags"
    }
    fn fields(&self) -> FieldNames {
        FieldNames { time: "time", address: "sector", size: "size" }
    }
    fn parser(&self, options: &Options) -> Parser {
        columns::parser(options, USUAL, Tail::Flags)
    }
    fn sniff(&self, head: &Head) -> Confidence {
        let fit = super::fit(self.parser(&Options::default()), head);
        if columns::has_fractions(head) { fit } else { columns::at_most_possible(fit) }
    }
    fn openings(&self) -> &'static [Opening] {
        columns::OPENINGS
    }
    fn assumed(&self, options: &Options) -> String {
        columns::assumed(options, USUAL, self.name())
    }
}
