//! SSDsim's traces, in nanoseconds; some carry a hash of the content as a sixth column. Source: the readme of SSDsim.

use super::columns::{self, Tail};
use super::{Confidence, FieldNames, Format, Head, Opening, Options, Parser, TimeUnit};

pub(super) struct Ssdsim;

const USUAL: TimeUnit = TimeUnit::Nanoseconds;

impl Format for Ssdsim {
    fn name(&self) -> &'static str {
        "ssdsim"
    }
    fn summary(&self) -> &'static str {
        "SSDsim: ns device sector sectors type [hash]"
    }
    fn fields(&self) -> FieldNames {
        FieldNames { time: "time", address: "sector", size: "size" }
    }
    fn parser(&self, options: &Options) -> Parser {
        columns::parser(options, USUAL, Tail::TypeAndHash)
    }
    fn sniff(&self, head: &Head) -> Confidence {
        let fit = super::fit(self.parser(&Options::default()), head);
        let hashed = head.lines().first().is_some_and(|line| line.split_ascii_whitespace().count() == 6);
        if hashed { fit } else { columns::at_most_possible(fit) }
    }
    fn openings(&self) -> &'static [Opening] {
        columns::OPENINGS
    }
    fn assumed(&self, options: &Options) -> String {
        columns::assumed(options, USUAL, self.name())
    }
}
