//! Front ends: NVMe/TCP connections and a virtual machine, before a drive that answers at once.

use crate::controller::settings;
use crate::reader::Reader;
use target::Figures;
use target::rehearsal::hosts::Act;
use target::rehearsal::{Rehearsal, Step};

/// Hosts with four connections, some of whom have to prove who they are: each part of the input says on which one does what, and bytes
/// that it sends come with their length.
pub(crate) fn connections(bytes: &[u8]) {
    converse(bytes);
}

fn converse(bytes: &[u8]) -> Figures {
    let mut input = Reader(bytes);
    let acts = std::iter::from_fn(|| {
        (!input.is_empty()).then(|| {
            let begin = input.byte();
            let act = match begin >> 6 {
                2 => Act::Prove { hash: 1 + (begin >> 2 & 3) % 3, is_mutual: begin & 0x10 != 0 },
                3 => Act::HangUp,
                _ => {
                    let length = input.half();
                    Act::Send(input.bytes(length.into()))
                }
            };
            (usize::from(begin), act)
        })
    });
    Rehearsal::new(settings()).converse(acts)
}

/// A machine: each part of the input is a step of its monitor or its guest.
pub(crate) fn machine(bytes: &[u8]) {
    let mut input = Reader(bytes);
    let steps = std::iter::from_fn(|| {
        (!input.is_empty()).then(|| match input.byte() % 7 {
            0 => Step::Register(input.half().into(), input.word()),
            1 => {
                let (command, length) = (input.half(), input.byte());
                Step::Message(command % 16, input.bytes((length & 0x7f).into()), length & 0x80 != 0)
            }
            2 => Step::Command(0, input.submission()),
            3 => Step::Command(1, input.submission()),
            4 => Step::Take(input.half(), input.byte().into()),
            5 => Step::Poke(input.half().into(), input.long()),
            _ => Step::Start,
        })
    });
    Rehearsal::new(settings()).run_machine(steps);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds;

    /// What fuzzing reaches depends on it: what is served behind each proof of the seeds, reads and writes.
    #[test]
    fn hosts_of_the_seeds_prove_who_they_are_and_are_served() {
        let served = |wanted: &str| {
            let seeds = seeds();
            let (.., seed) = seeds.iter().find(|(target, name, _)| *target == "connections" && name == wanted).unwrap();
            let Figures { reads, writes, .. } = converse(seed);
            [reads, writes]
        };
        assert_eq!(["session", "proved", "mutual", "strangers"].map(served), [[3, 3], [2, 2], [2, 2], [1, 1]]);
    }
}
