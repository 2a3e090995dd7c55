//! Words that an argument may be, as people write them: capitals, `-` and `_` make no difference, as in configurations.

use clap::builder::PossibleValue;
use clap::builder::TypedValueParser;
use clap::{Arg, Command, Error};
use std::ffi::OsStr;
use units::is_called;

/// A parser of a few words that is given them in their own spelling.
#[derive(Clone)]
pub(crate) struct Called<P>(pub(crate) P);

impl<P: TypedValueParser> TypedValueParser for Called<P> {
    type Value = P::Value;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, said: &OsStr) -> Result<P::Value, Error> {
        let known = self.0.possible_values().into_iter().flatten();
        let meant = said.to_str().and_then(|said| known.into_iter().find(|known| is_called(known.get_name(), said)));
        let meant = meant.as_ref().map_or(said, |known| OsStr::new(known.get_name()));
        self.0.parse_ref(command, argument, meant)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.0.possible_values()
    }
}

#[cfg(test)]
mod tests {
    use crate::arguments::Flashloom;
    use clap::Parser;

    #[test]
    fn words_of_arguments_may_be_written_as_people_do() {
        let is_taken = |words: &[&str]| Flashloom::try_parse_from([&["flashloom"], words].concat()).is_ok();
        for words in [
            &["replay", "trace", "--format", "SPC", "--mode", "TIMED", "--count-unit", "Pages"][..],
            &["replay", "trace", "--format", "FIO_iolog", "--event", "Issued"],
            &["replay", "trace", "--unit", "NS", "--devices", "FOLD"],
            &["list", "Workloads"],
            &["bench", "VFIO_User"],
        ] {
            assert!(is_taken(words), "{words:?}");
        }
        assert!(!is_taken(&["replay", "trace", "--format", "spx"]) && !is_taken(&["list", "load"]));
    }
}
