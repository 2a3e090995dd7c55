//! Which I/O queues there are: Create and Delete (Base §5.4 to §5.7).

use crate::DeviceEvent;
use crate::spec::{PAGE_BYTES, QueuePriority, Status, Submission};
use units::QueueId;

/// The I/O queues of a controller, by identifier; place 0, the admin queue's, stays empty.
#[derive(Debug)]
pub(crate) struct QueueTable {
    /// Submission queues that complete to each completion queue.
    completions: Box<[Option<u32>]>,
    /// The completion queue of each submission queue.
    submissions: Box<[Option<QueueId>]>,
    /// Queues of each kind that Set Features granted; the host may use identifiers up to these.
    granted: [u16; 2],
}

const CONTIGUOUS: u32 = 1;
const INTERRUPTS_ENABLED: u32 = 1 << 1;

/// QSIZE of dword 10 as a number of entries.
fn entries(submission: &Submission, most: u32) -> Result<u32, Status> {
    let entries = (submission.dword(10) >> 16) + 1;
    if (2..=most).contains(&entries) { Ok(entries) } else { Err(Status::INVALID_QUEUE_SIZE) }
}

/// Queues lie in one piece (CAP.CQR), from the beginning of a page on.
fn check_place(submission: &Submission) -> Result<(), Status> {
    if submission.dword(11) & CONTIGUOUS == 0 {
        return Err(Status::INVALID_FIELD);
    }
    if submission.prp1().0.is_multiple_of(PAGE_BYTES) { Ok(()) } else { Err(Status::PRP_OFFSET_INVALID) }
}

impl QueueTable {
    pub(crate) fn new(queues_max: u16) -> Self {
        let places = usize::from(queues_max) + 1;
        QueueTable {
            completions: vec![None; places].into(),
            submissions: vec![None; places].into(),
            granted: [queues_max; 2],
        }
    }

    /// Whether the host has made any.
    pub(crate) fn any(&self) -> bool {
        self.completions.iter().any(Option::is_some)
    }

    /// Grants submission and completion queues, at most as many as there are places.
    pub(crate) fn grant(&mut self, submissions: u32, completions: u32) -> [u16; 2] {
        let most = self.completions.len() as u32 - 1;
        self.granted = [submissions, completions].map(|asked| asked.min(most) as u16);
        self.granted
    }

    fn in_range(queue: QueueId, granted: u16) -> Result<QueueId, Status> {
        if queue.0 == 0 || queue.0 > granted { Err(Status::INVALID_QUEUE_ID) } else { Ok(queue) }
    }

    fn submission_id(&self, submission: &Submission) -> Result<QueueId, Status> {
        Self::in_range(QueueId(submission.dword(10) as u16), self.granted[0])
    }

    fn completion_id(&self, submission: &Submission) -> Result<QueueId, Status> {
        Self::in_range(QueueId(submission.dword(10) as u16), self.granted[1])
    }

    pub(crate) fn create_completion(
        &mut self,
        submission: &Submission,
        entries_max: u32,
        vectors: u16,
    ) -> Result<DeviceEvent, Status> {
        let queue = self.completion_id(submission)?;
        if self.completions[queue.index()].is_some() {
            return Err(Status::INVALID_QUEUE_ID);
        }
        let entries = entries(submission, entries_max)?;
        check_place(submission)?;
        let vector = (submission.dword(11) >> 16) as u16;
        if vector >= vectors {
            return Err(Status::INVALID_INTERRUPT_VECTOR);
        }
        let vector = (submission.dword(11) & INTERRUPTS_ENABLED != 0).then_some(vector);
        self.completions[queue.index()] = Some(0);
        Ok(DeviceEvent::CompletionQueueCreated { queue, base: submission.prp1(), entries, vector })
    }

    pub(crate) fn create_submission(
        &mut self,
        submission: &Submission,
        entries_max: u32,
    ) -> Result<DeviceEvent, Status> {
        let queue = self.submission_id(submission)?;
        if self.submissions[queue.index()].is_some() {
            return Err(Status::INVALID_QUEUE_ID);
        }
        let completions = Self::in_range(QueueId((submission.dword(11) >> 16) as u16), self.granted[1])?;
        let users = self.completions[completions.index()].as_mut().ok_or(Status::COMPLETION_QUEUE_INVALID)?;
        let entries = entries(submission, entries_max)?;
        check_place(submission)?;
        *users += 1;
        self.submissions[queue.index()] = Some(completions);
        let priority = QueuePriority::from_bits(submission.dword(11) >> 1);
        Ok(DeviceEvent::SubmissionQueueCreated { queue, base: submission.prp1(), entries, completions, priority })
    }

    pub(crate) fn delete_submission(&mut self, submission: &Submission) -> Result<DeviceEvent, Status> {
        let queue = self.submission_id(submission)?;
        let completions = self.submissions[queue.index()].take().ok_or(Status::INVALID_QUEUE_ID)?;
        let users = self.completions[completions.index()].as_mut().expect("it outlives its submission queues");
        *users -= 1;
        Ok(DeviceEvent::SubmissionQueueDeleted(queue))
    }

    pub(crate) fn delete_completion(&mut self, submission: &Submission) -> Result<DeviceEvent, Status> {
        let queue = self.completion_id(submission)?;
        match self.completions[queue.index()] {
            None => Err(Status::INVALID_QUEUE_ID),
            Some(1..) => Err(Status::INVALID_QUEUE_DELETION),
            Some(0) => {
                self.completions[queue.index()] = None;
                Ok(DeviceEvent::CompletionQueueDeleted(queue))
            }
        }
    }
}
