//! MQSim's traces. Its configuration says what unit the time is in (`Time_Unit`); nanoseconds are usual. Source: README
//! of MQSim, "Defining a Trace-based Workload".

use super::columns::{self, Tail};
use super::{Confidence, FieldNames, Format, Head, Opening, Options, Parser, TimeUnit};

pub(super) struct Mqsim;

const USUAL: TimeUnit = TimeUnit::Nanoseconds;

impl Format for Mqsim {
    fn name(&self) -> &'static str {
        "mqsim"
    }
    fn summary(&self) -> &'static str {
        "MQSim: time device sector sectors type; ns unless told otherwise"
    }
    fn fields(&self) -> FieldNames {
        FieldNames { time: "time", address: "sector", size: "size" }
    }
    fn parser(&self, options: &Options) -> Parser {
        columns::parser(options, USUAL, Tail::Type)
    }
    fn sniff(&self, head: &Head) -> Confidence {
        let fit = super::fit(self.parser(&Options::default()), head);
        columns::at_most_possible(fit)
    }
    fn openings(&self) -> &'static [Opening] {
        columns::OPENINGS
    }
    fn assumed(&self, options: &Options) -> String {
        columns::assumed(options, USUAL, self.name())
    }
}
