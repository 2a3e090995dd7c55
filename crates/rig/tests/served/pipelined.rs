//! Commands that run alone in their queue, with others close behind them: the queue is never empty, and half of what is behind them
//! arrives while they end.

use super::Serving;
use super::conversations::{NOWHERE, read, write};
use super::initiator::{Payload, Queue};
use firmware::architecture::ARCHITECTURES;
use nvme::spec::{DsmRange, Fuse, Status, Submission};

const ROUNDS: u64 = 1_000;

/// A command that is sent, and how many are outstanding afterwards.
struct Pipeline<'a> {
    queue: &'a mut Queue,
    outstanding: usize,
    depth: usize,
}

impl Pipeline<'_> {
    fn send(&mut self, submission: Submission, payload: Payload<'_>) {
        self.queue.send(submission, &payload);
        self.outstanding += 1;
    }

    /// Waits until no more are outstanding than may be.
    fn settle(&mut self, most: usize) {
        while self.outstanding > most {
            let (completion, _) = self.queue.finish().expect("an answer");
            assert_eq!(completion.status(), Status::SUCCESS, "{completion:?}");
            self.outstanding -= 1;
        }
    }

    fn round(&mut self, round: u64) {
        let zero = [0; 512];
        if !round.is_multiple_of(3) {
            let range = DsmRange { attributes: 0, blocks: 8, slba: 8 * (round % 30) }.encode();
            let bytes = range.map(u64::to_le_bytes).concat();
            self.send(Submission::dataset_management(1, 1, NOWHERE), Payload::Send(&bytes));
        }
        self.send(Submission::compare(1, 300, 1, NOWHERE).with_fuse(Fuse::First), Payload::Send(&zero));
        self.send(write(300, 1).with_fuse(Fuse::Second), Payload::Send(&zero));
        (0..round % 4).for_each(|step| self.send(read(400 + step, 1), Payload::Receive(512)));
        self.settle(self.depth);
    }
}

#[test]
fn what_comes_while_a_command_runs_alone_waits_its_turn() {
    for architecture in ARCHITECTURES {
        for threads in [2, 4] {
            let serving = Serving { architecture: architecture.name(), threads, ..Serving::default() };
            let running = serving.start();
            let mut host = running.host("host").attach();
            for depth in [6, 24] {
                let mut pipeline = Pipeline { queue: &mut host.queues[0], outstanding: 0, depth };
                (0..ROUNDS).for_each(|round| pipeline.round(round));
                pipeline.settle(0);
            }
            running.end();
        }
    }
}
