//! What the drive has done for its hosts, since it was started and before, as log pages tell it.

use crate::health::{DriveHealth, SPARE_THRESHOLD};
use crate::lifetime::Lifetime;
use nvme::spec::log_page::{EnduranceGroupPage, HealthPage, OcpHealthPage, warning};
use nvme::spec::{Completion, Opcode, Submission};
use std::time::Duration;
use units::{Bytes, QueueId, Span, Time};

/// Where the latencies of OCP's monitor part: 5, 10, 25 and 100 ms; commands below the first are not counted.
const THRESHOLDS_MS: [u64; 4] = [5, 10, 25, 100];

/// OCP counts its thresholds in steps of so many milliseconds, from one step.
const THRESHOLD_STEP_MS: u64 = 5;

/// What the drive has to do for one queue without moving data, at which the next command of the queue waits: as much as it is given at once
/// of one such command. What waits goes with its queue, so that a reset is not longer for it.
const UNMOVED_FULL: Bytes = Bytes(nvme::RANGE_BYTES_MAX);

/// What is copied counts as so much: each page of it is read and written before the next.
const COPY_WEIGHT: u64 = 8;

/// So there is less than this of a queue at the drive: as much as it is given at once may come behind what is a block short of that.
pub const UNMOVED_MOST: Bytes = Bytes(2 * UNMOVED_FULL.0);

/// A command at the drive.
#[derive(Clone, Copy, Debug, Default)]
struct Flight {
    begun: Time,
    namespace: u32,
    is_under_way: bool,
    /// It came by an I/O queue of a host, and not from the drive itself.
    is_hosts: bool,
    /// Somebody waits until it is over.
    is_awaited: bool,
    /// Bytes of blocks that it has the drive work on without the host.
    unmoved: Bytes,
}

/// Latencies of one kind of command, by bucket: how many, and the longest in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Buckets {
    counts: [u32; 4],
    longest_ms: [u16; 4],
}

impl Buckets {
    fn count(&mut self, latency: Span) {
        let millis = latency.picos() / Span::from_millis(1).picos();
        if let Some(bucket) = THRESHOLDS_MS.iter().rposition(|threshold| millis >= *threshold) {
            self.counts[bucket] = self.counts[bucket].saturating_add(1);
            self.longest_ms[bucket] = self.longest_ms[bucket].max(millis.min(0xfffe) as u16);
        }
    }
}

/// What the drive has done since it was started.
#[derive(Debug, Default)]
pub(crate) struct Served {
    pub(crate) sectors_read: u64,
    pub(crate) sectors_written: u64,
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) media_errors: u64,
    pub(crate) outstanding: u32,
    unaligned: u64,
    /// Blocks of the drive in the unit that it maps.
    unit_blocks: u64,
    /// Commands outstanding, by slot of each queue pair, and how many by namespace.
    flights: Vec<Flight>,
    depth: usize,
    by_namespace: Vec<u32>,
    /// What commands outstanding of each queue pair have the drive do without their host.
    unmoved: Vec<Bytes>,
    /// Commands that somebody waits for.
    pub(crate) awaited: u32,

    /// Of reads, writes and deallocations.
    latencies: [Buckets; 3],
    /// Of the commands outstanding, those that are a host's.
    of_hosts: u32,
    busy_since: Time,
    busy: Span,
    /// What it had done before it was started.
    before: Lifetime,
}

impl Served {
    /// Nothing yet, of so many queue pairs of a depth and a drive that maps so many blocks together. The greatest identifier of a namespace
    /// that hosts can have is `namespaces`.
    pub(crate) fn new(pairs: u16, depth: u16, namespaces: u32, unit_blocks: u64) -> Self {
        let depth = usize::from(depth);
        let flights = vec![Flight::default(); usize::from(pairs) * depth];
        let (by_namespace, unmoved) = (vec![0; namespaces as usize + 1], vec![Bytes(0); pairs.into()]);
        Served { flights, depth, by_namespace, unmoved, unit_blocks, ..Served::default() }
    }

    /// It had done this before it was started.
    pub(crate) fn after(self, before: Lifetime) -> Self {
        Served { before, ..self }
    }

    /// What it has done in all its life, but for the time that took since it was started.
    fn counted(&self) -> Lifetime {
        let before = self.before;
        Lifetime {
            sectors_read: before.sectors_read.saturating_add(self.sectors_read),
            sectors_written: before.sectors_written.saturating_add(self.sectors_written),
            reads: before.reads.saturating_add(self.reads),
            writes: before.writes.saturating_add(self.writes),
            media_errors: before.media_errors.saturating_add(self.media_errors),
            ..before
        }
    }

    /// What it has done in all its life, `now` after it was started.
    pub(crate) fn lifetime(&self, now: Time) -> Lifetime {
        let busy = self.busy + if self.of_hosts > 0 { now.since(self.busy_since) } else { Span::ZERO };
        let [busy, powered] = [busy, now.since(Time::ZERO)].map(|span| Duration::from_nanos(span.nanos()));
        Lifetime { busy: self.before.busy + busy, powered: self.before.powered + powered, ..self.counted() }
    }

    /// A host's command goes to the firmware as `entry`. OCP counts writes that do not begin at a unit; how long they are does
    /// not matter.
    pub(crate) fn begin_for_host(&mut self, now: Time, place: (QueueId, u16), namespace: u32, entry: &Submission) {
        let is_write = entry.opcode() == Opcode::Write as u8;
        self.unaligned += u64::from(is_write && !entry.slba().is_multiple_of(self.unit_blocks.max(1)));
        self.begin(now, place, namespace);
        let at = self.place(place);
        self.flights[at].is_hosts = true;
        if self.of_hosts == 0 {
            self.busy_since = now;
        }
        self.of_hosts += 1;
    }

    /// A command for a namespace of hosts goes to the firmware by a slot of a queue pair; 0 is the front end's own.
    pub(crate) fn begin(&mut self, now: Time, place: (QueueId, u16), namespace: u32) {
        let counted = self.counted_at(namespace);
        self.by_namespace[counted] += 1;
        let at = self.place(place);
        self.flights[at] = Flight { begun: now, namespace, is_under_way: true, ..Flight::default() };
        self.outstanding += 1;
    }

    /// A command that goes to the firmware has the drive work on so many bytes of blocks without the host.
    pub(crate) fn lade(&mut self, place: (QueueId, u16), (entry, unmoved): (&Submission, Bytes)) {
        let unmoved = if entry.opcode() == Opcode::Copy as u8 { unmoved * COPY_WEIGHT } else { unmoved };
        let at = self.place(place);
        self.flights[at].unmoved = unmoved;
        self.unmoved[usize::from(place.0.0) - 1] += unmoved;
    }

    /// Whether the drive works on anything for a host.
    pub(crate) fn is_busy(&self) -> bool {
        self.of_hosts > 0
    }

    /// Whether the drive has as much to do without the host as one queue may ask for: the next command of this pair waits.
    pub(crate) fn is_laden(&self, queue: QueueId) -> bool {
        self.unmoved[usize::from(queue.0) - 1] >= UNMOVED_FULL
    }

    fn place(&self, (queue, slot): (QueueId, u16)) -> usize {
        (usize::from(queue.0) - 1) * self.depth + usize::from(slot)
    }

    /// Waits from now on for every command that is at the drive: `awaited` says how many are left.
    pub(crate) fn await_all(&mut self) {
        for flight in self.flights.iter_mut().filter(|flight| flight.is_under_way && !flight.is_awaited) {
            flight.is_awaited = true;
            self.awaited += 1;
        }
    }

    /// Somebody who waited for a command waits for its next step too, if it is at the drive.
    pub(crate) fn await_step(&mut self, place: (QueueId, u16)) {
        let at = self.place(place);
        let flight = &mut self.flights[at];
        if flight.is_under_way && !flight.is_awaited {
            flight.is_awaited = true;
            self.awaited += 1;
        }
    }

    /// Where commands for a namespace are counted: one for all of them is none's, as what the front end asks for itself.
    fn counted_at(&self, namespace: u32) -> usize {
        if (namespace as usize) < self.by_namespace.len() { namespace as usize } else { 0 }
    }

    /// Commands of hosts that a namespace has at the drive.
    pub(crate) fn under_way(&self, namespace: u32) -> u32 {
        self.by_namespace[self.counted_at(namespace)]
    }

    /// A command of a queue pair comes back; whether somebody waited for it. The drive is busy with commands of I/O queues alone, and
    /// counts the data that these could not be given (Base §5.16.1.3). A Write Fault is none: it takes nothing more, and has what it had.
    pub(crate) fn end(&mut self, now: Time, queue: QueueId, opcode: Opcode, completion: &Completion) -> bool {
        let at = self.place((queue, completion.command_id()));
        let Flight { begun, namespace, is_hosts, is_awaited, unmoved, .. } = std::mem::take(&mut self.flights[at]);
        let laden = &mut self.unmoved[usize::from(queue.0) - 1];
        *laden = *laden - unmoved;
        self.awaited -= u32::from(is_awaited);
        let counted = self.counted_at(namespace);
        self.by_namespace[counted] -= 1;
        let kind = match opcode {
            Opcode::Read | Opcode::Compare => Some(0),
            Opcode::Write => Some(1),
            Opcode::DatasetManagement => Some(2),
            _ => None,
        };
        if let Some(kind) = kind {
            self.latencies[kind].count(now.since(begun));
        }
        self.outstanding -= 1;
        if is_hosts {
            self.of_hosts -= 1;
            if self.of_hosts == 0 {
                self.busy += now.since(self.busy_since);
            }
            let status = completion.status();
            self.media_errors += u64::from((status.code_type(), status.code()) == (2, 0x81));
        }
        is_awaited
    }

    /// A host's command has done what it was asked to, of this opcode, to so many bytes of blocks. Which counts as what is in NVM §1.4.2:
    /// a Copy is a host's read and its write, a Verify reads data and is no host's read.
    pub(crate) fn count(&mut self, opcode: Opcode, Bytes(bytes): Bytes) {
        let sectors = bytes / units::SECTOR_BYTES;
        let (data, hosts) = match opcode {
            Opcode::Read | Opcode::Compare => ([sectors, 0], [1, 0]),
            Opcode::Verify => ([sectors, 0], [0, 0]),
            Opcode::Copy => ([0, sectors], [1, 1]),
            Opcode::Write => ([0, sectors], [0, 1]),
            _ => return,
        };
        self.sectors_read += data[0];
        self.sectors_written += data[1];
        self.reads += hosts[0];
        self.writes += hosts[1];
    }

    /// The page, `now` after the drive was started. It has no thermometer: its temperature stays 0.
    pub(crate) fn health(&self, now: Time, drive: DriveHealth) -> HealthPage {
        let life = self.lifetime(now);
        let minutes = |time: Duration| u128::from(time.as_secs() / 60);
        let mut page = HealthPage::default();
        page.set_critical_warning(drive.warnings())
            .set_available_spare(drive.available_spare)
            .set_spare_threshold(SPARE_THRESHOLD)
            .set_percentage_used(drive.percentage_used)
            .set_group_warnings(drive.warnings() & warning::OF_GROUPS)
            .set_data_units_read(u128::from(life.sectors_read.div_ceil(1000)))
            .set_data_units_written(u128::from(life.sectors_written.div_ceil(1000)))
            .set_host_reads(life.reads.into())
            .set_host_writes(life.writes.into())
            .set_busy_minutes(minutes(life.busy))
            .set_power_cycles(drive.power.count.into())
            .set_unsafe_shutdowns(drive.power.unsafe_shutdowns.into())
            .set_power_on_hours(minutes(life.powered) / 60)
            .set_media_errors(life.media_errors.into());
        page
    }

    /// The page of the one endurance group, which is the drive; `unallocated` bytes of its `capacity` no namespace has.
    pub(crate) fn endurance(&self, drive: &DriveHealth, [capacity, unallocated]: [u128; 2]) -> EnduranceGroupPage {
        let life = self.counted();
        let sectors = |sectors: u64| billions(u128::from(sectors) * u128::from(units::SECTOR_BYTES));
        let mut page = EnduranceGroupPage::default();
        page.set_critical_warning(drive.warnings())
            .set_available_spare(drive.available_spare)
            .set_spare_threshold(SPARE_THRESHOLD)
            .set_percentage_used(drive.percentage_used)
            .set_endurance_estimate(billions(drive.media.endurance))
            .set_data_units_read(sectors(life.sectors_read))
            .set_data_units_written(sectors(life.sectors_written))
            .set_media_units_written(billions(drive.media.written))
            .set_host_reads(life.reads.into())
            .set_host_writes(life.writes.into())
            .set_media_errors(life.media_errors.into())
            .set_capacity(capacity)
            .set_unallocated(unallocated);
        page
    }

    /// OCP's health page, where so many blocks of namespaces are in use. There is no capacitor, no link of its own and no throttling to
    /// tell of.
    pub(crate) fn ocp_health(&self, drive: &DriveHealth, used_blocks: u64) -> OcpHealthPage {
        let media = &drive.media;
        let mut page = OcpHealthPage::default();
        page.set_media_written(media.written)
            .set_media_read(media.read)
            .set_bad_user_blocks(media.bad_blocks & 0xffff_ffff_ffff | u64::from(drive.available_spare) << 48)
            .set_bad_system_blocks(100 << 48)
            .set_uncorrectable_reads(media.uncorrectable)
            .set_soft_corrections(media.retries)
            .set_erases_max(media.erases.1)
            .set_erases_min(media.erases.0)
            .set_major(2)
            .set_incomplete_shutdowns(drive.power.unsafe_shutdowns.min(u32::MAX.into()) as u32)
            .set_free_blocks(media.free_blocks)
            .set_capacitor(0xffff)
            .set_unaligned(self.unaligned)
            .set_used(used_blocks)
            .set_endurance_estimate(billions(media.endurance))
            .set_version(3)
            .set_guid(OCP_HEALTH_GUID);
        page
    }

    /// OCP's latency monitor: it is on, always, and counts from the start of the drive. There is no clock of hosts to stamp with.
    pub(crate) fn ocp_latency(&self) -> Vec<u8> {
        let mut page = vec![0u8; 512];
        // Monitoring is on, and latencies of the buckets are told.
        page[0] = 0b11;
        for (at, threshold) in THRESHOLDS_MS.iter().enumerate() {
            page[6 + at] = (threshold / THRESHOLD_STEP_MS - 1) as u8;
        }
        // Counters go by bucket upward; latencies and stamps downward, of deallocation, write and read.
        for (kind, buckets) in self.latencies.iter().enumerate() {
            for bucket in 0..4 {
                let counter = 0x20 + 16 * bucket + 4 * (3 - kind);
                page[counter..counter + 4].copy_from_slice(&buckets.counts[bucket].to_le_bytes());
                let place = (3 - bucket) * 3 + (2 - kind);
                page[0x60 + 8 * place..0x68 + 8 * place].fill(0xff);
                page[0xc0 + 2 * place..0xc2 + 2 * place].copy_from_slice(&buckets.longest_ms[bucket].to_le_bytes());
                page[0x130 + 8 * place..0x138 + 8 * place].fill(0xff);
            }
        }
        page[0x1c4..0x1cc].fill(0xff);
        page[0x1ee..0x1f0].copy_from_slice(&1u16.to_le_bytes());
        page[0x1f0..].copy_from_slice(&OCP_LATENCY_GUID);
        page
    }
}

/// Endurance is told in these, rounded up (Base §5.16.1.10).
fn billions(bytes: u128) -> u128 {
    bytes.div_ceil(1_000_000_000)
}

/// GUIDs of the pages (OCP Datacenter NVMe SSD Specification 2.0 §4.8.2 and §4.8.4), lowest byte first.
const OCP_HEALTH_GUID: [u8; 16] = 0xafd5_14c9_7c6f_4f9c_a4f2_bfea_2810_afc5u128.to_le_bytes();
const OCP_LATENCY_GUID: [u8; 16] = 0x85d4_5e58_d4e6_4370_9c6c_84d0_8cc0_7a92u128.to_le_bytes();

#[cfg(test)]
mod tests {
    use super::*;
    use nvme::spec::Status;

    #[test]
    fn those_that_came_before_are_waited_for_and_no_others() {
        let mut served = Served::new(1, 4, 1, 8);
        let over = |slot| Completion::new(0, 0, QueueId(1), slot, false, Status::SUCCESS);
        served.begin(Time::ZERO, (QueueId(1), 0), 1);
        served.begin(Time::ZERO, (QueueId(1), 1), 1);
        served.await_all();
        served.begin(Time::ZERO, (QueueId(1), 2), 1);
        served.end(Time::ZERO, QueueId(1), Opcode::Write, &over(2));
        assert_eq!(served.awaited, 2);
        served.await_all();
        served.end(Time::ZERO, QueueId(1), Opcode::Write, &over(0));
        served.end(Time::ZERO, QueueId(1), Opcode::Write, &over(1));
        assert_eq!(served.awaited, 0);
    }

    /// Commands side by side count once, and what is still under way up to now; what the drive does for itself counts nothing.
    #[test]
    fn busy_is_the_time_with_any_command_at_the_drive() {
        let mut served = Served::new(1, 4, 1, 8);
        let after = |minutes: u64| Time::ZERO + Span::from_secs(60 * minutes);
        let over = |slot| Completion::new(0, 0, QueueId(1), slot, false, Status::SUCCESS);
        let busy = |served: &Served, minutes: u64| served.health(after(minutes), DriveHealth::NEW).busy_minutes();
        let begin = |served: &mut Served, minutes, slot| {
            served.begin_for_host(after(minutes), (QueueId(1), slot), 1, &Submission::flush(1));
        };
        served.begin(after(1), (QueueId(1), 3), 0);
        assert_eq!(busy(&served, 10), 0);
        begin(&mut served, 10, 0);
        begin(&mut served, 12, 1);
        assert_eq!(busy(&served, 13), 3);
        served.end(after(14), QueueId(1), Opcode::Read, &over(0));
        served.end(after(17), QueueId(1), Opcode::Read, &over(1));
        assert_eq!([17, 90].map(|minutes| busy(&served, minutes)), [7, 7]);
        begin(&mut served, 100, 2);
        assert_eq!([100, 101, 105].map(|minutes| busy(&served, minutes)), [7, 8, 12]);
        assert_eq!(served.health(after(125), DriveHealth::NEW).power_on_hours(), 2);
    }

    #[test]
    fn a_copy_is_as_much_to_do_as_a_longer_command() {
        let nowhere = nvme::spec::DataPointer::default();
        let laden = |entry: Submission, mebibytes: u64| {
            let mut served = Served::new(1, 4, 1, 8);
            served.begin_for_host(Time::ZERO, (QueueId(1), 0), 1, &entry);
            served.lade((QueueId(1), 0), (&entry, Bytes::mib(mebibytes)));
            let is_laden = served.is_laden(QueueId(1));
            served.end(
                Time::ZERO,
                QueueId(1),
                Opcode::Flush,
                &Completion::new(0, 0, QueueId(1), 0, false, Status::SUCCESS),
            );
            assert!(!served.is_laden(QueueId(1)), "it is over");
            is_laden
        };
        let copy = Submission::copy(1, 0, 1, nowhere);
        assert_eq!([laden(copy, 3), laden(copy, 4)], [false, true]);
        assert_eq!([31, 32].map(|mebibytes| laden(Submission::verify(1, 0, 8), mebibytes)), [false, true]);
    }

    #[test]
    fn only_data_that_hosts_could_not_be_given_are_media_errors() {
        let mut served = Served::new(1, 4, 1, 8);
        let mut errors = |is_hosts, status| {
            let place = (QueueId(1), 0);
            match is_hosts {
                true => served.begin_for_host(Time::ZERO, place, 1, &Submission::verify(1, 0, 8)),
                false => served.begin(Time::ZERO, place, 0),
            }
            let completion = Completion::new(0, 0, place.0, place.1, false, status);
            served.end(Time::ZERO, place.0, Opcode::Verify, &completion);
            served.media_errors
        };
        assert_eq!(errors(true, Status::UNRECOVERED_READ), 1);
        assert_eq!(errors(false, Status::UNRECOVERED_READ), 1, "the drive's own");
        assert_eq!(errors(true, Status::WRITE_FAULT), 1, "it was not taken");
        assert_eq!(errors(true, Status::COMPARE_FAILURE), 1);
    }

    #[test]
    fn warnings_of_the_endurance_group_are_in_the_health_page() {
        let warned = |drive| Served::new(1, 4, 1, 8).health(Time::ZERO, drive).group_warnings();
        let worn = DriveHealth { available_spare: 0, read_only: true, ..DriveHealth::NEW };
        assert_eq!([DriveHealth::NEW, worn].map(warned), [0, warning::SPARE | warning::READ_ONLY]);
    }

    #[test]
    fn writes_that_begin_within_a_unit_are_counted() {
        let mut served = Served::new(1, 4, 1, 8);
        let nowhere = nvme::spec::DataPointer { prp1: units::HostAddress(0), prp2: units::HostAddress(0) };
        for (slba, blocks) in [(0, 8), (8, 3), (1, 8), (12, 4), (16, 16)] {
            for command in [Submission::write(1, slba, blocks, nowhere), Submission::read(1, slba, blocks, nowhere)] {
                served.begin_for_host(Time::ZERO, (QueueId(1), 0), 1, &command);
            }
        }
        assert_eq!(served.ocp_health(&DriveHealth::NEW, 0).unaligned(), 2);
    }

    #[test]
    fn latencies_fall_into_the_bucket_of_their_threshold() {
        let mut served = Served::new(2, 4, 1, 8);
        for (slot, (opcode, millis)) in
            [(Opcode::Read, 4), (Opcode::Read, 5), (Opcode::Write, 99), (Opcode::Read, 400)].into_iter().enumerate()
        {
            let (queue, slot) = (QueueId(2), slot as u16);
            served.begin(Time::ZERO, (queue, slot), 1);
            let completion = Completion::new(0, 0, queue, slot, false, Status::SUCCESS);
            served.end(Time::ZERO + Span::from_millis(millis), queue, opcode, &completion);
        }
        assert_eq!((served.under_way(1), served.outstanding), (0, 0));
        let page = served.ocp_latency();
        let counter = |bucket: usize, kind: usize| page[0x20 + 16 * bucket + 4 * kind];
        assert_eq!([counter(0, 3), counter(2, 2), counter(3, 3), counter(0, 2)], [1, 1, 1, 0]);
        assert_eq!(page[0xc0 + 2 * 2..0xc0 + 2 * 2 + 2], 400u16.to_le_bytes(), "the read of the last bucket");
        assert_eq!(page[0xc0 + 2 * 4..0xc0 + 2 * 4 + 2], 99u16.to_le_bytes(), "the write of the one before");
        assert_eq!(page[6..10], [0, 1, 4, 19]);
    }
}
