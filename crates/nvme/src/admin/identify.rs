//! Identify: the structures, made from the settings (Base §5.17).

use crate::io::RANGE_BYTES_MAX;
use crate::namespaces::{Format, GRANULE_BYTES, Space};
use crate::spec::fabrics::ANY_CONTROLLER;
use crate::spec::identify::{
    self, CommandSetController, IDENTIFY_BYTES, IdentifyController, IdentifyNamespace, IndependentNamespace, padded,
};
use crate::spec::{
    ALL_NAMESPACES, AdminOpcode, COMPLETION_BYTES, COPY_BYTES_MAX, COPY_RANGES_MAX, Opcode, PAGE_BYTES,
    SUBMISSION_BYTES, Status, Submission, log_page, registers,
};
use crate::{Controller, ControllerSettings, METADATA_BYTES, NamespaceSettings, Transport};
use units::Span;

/// LPA: Commands Supported and Effects, and offsets into pages (Base §5.17.2.1).
const EFFECTS: u8 = 1 << 1;
const OFFSETS: u8 = 1 << 2;
/// FRMW: one slot, read only.
const FIRMWARE_UPDATES: u8 = 1 | 1 << 1;
/// What a Dataset Management should ask for at most: one range of this length keeps its place in the order of its queue, and many such
/// commands are under way at a time. More and longer ranges are carried out nevertheless, in parts, while the queue waits: that the limits
/// name should not be (NVM §3.2.3.1), but hosts that do not read them would deallocate next to nothing.
const DEALLOCATE_RANGES: u8 = 1;
const DEALLOCATE_RANGE_BYTES: u64 = 1 << 20;
/// RTD3E: what a host should give a shutdown at the least, which writes the buffer to flash. Linux waits no longer than this.
const SHUTDOWN_LEAST: Span = Span::from_secs(60);
/// VWC: there is one, and Flush takes all namespaces.
const WRITE_CACHE: u8 = 1 | 3 << 1;
/// VWC without a cache: Flush takes all namespaces all the same.
const NO_WRITE_CACHE: u8 = 3 << 1;
/// DLFEAT: deallocated blocks read as zeroes, and Write Zeroes may deallocate (NVM §4.1.5.1).
const DEALLOCATED_READS_ZERO: u8 = 1 | 1 << 3;
/// Abort commands worth having at once, from zero; each is answered at once, so the number does not matter.
const ABORT_LIMIT: u8 = 3;
/// CNTRLTYPE of a controller with namespaces, and of one for discovery.
const IO_CONTROLLER: u8 = 1;
const DISCOVERY_CONTROLLER: u8 = 2;
/// CTRATT: host identifiers of 128 bits, as Connect brings them.
const WIDE_HOST_IDENTIFIERS: u32 = 1;
/// CTRATT: traffic-based keep alive.
const TRAFFIC_KEEPS_ALIVE: u32 = 1 << 6;
/// CTRATT: there is the list of CNS 16h (Namespace Granularity).
const NAMESPACE_GRANULARITY: u32 = 1 << 7;
/// SGLS: SGLs without alignment, offsets into the capsule, transport descriptors.
const MESSAGE_SGLS: u32 = 1 | 1 << 20 | 1 << 21;
/// SGLS: SGLs without alignment of a few hundred descriptors, bit buckets, lists longer than their data, metadata by one.
const MEMORY_SGLS: u32 = 1 | 0xff << 8 | 1 << 16 | 1 << 18 | 1 << 19;
/// NSFEAT: the namespace has atomic write fields of its own, and says what it is written in best.
const ATOMIC_FIELDS: u8 = 1 << 1;
const PREFERS: u8 = 1 << 4;
/// CTRATT: endurance groups.
const ENDURANCE_GROUPS: u32 = 1 << 4;
/// OACS: Format NVM, Namespace Management, Device Self-test.
const MANAGEMENT: u16 = 1 << 1 | 1 << 3 | 1 << 4;
/// OACS: Doorbell Buffer Config.
const SHADOW_DOORBELLS: u16 = 1 << 8;
/// EDSTT: how long reading all of a drive takes at the most, as it is told; how far it is stands in the log.
const SELF_TEST_MINUTES: u16 = 10;
/// DPC: types 1 to 3, in the last bytes of the metadata.
const PROTECTIONS: u8 = 0b1_0111;
/// NSATTR: write protected.
const WRITE_PROTECTED: u8 = 1;
/// NSTAT: ready.
const NAMESPACE_READY: u8 = 1;

impl Controller {
    pub(super) fn identify(&self, submission: &Submission) -> Result<Vec<u8>, Status> {
        let (id, own) = (submission.namespace(), self.settings.controller_id);
        let namespace = || self.namespaces.of(own, id).map(|space| &space.settings).ok_or(self.namespaces.missing(id));
        // Zeroes are said of an identifier that there may be and that has no namespace here.
        let is_inactive = self.is_identifier(id) && self.namespaces.of(own, id).is_none();
        let mut data = match submission.dword(10) as u8 {
            identify::NAMESPACE => self.one_namespace(id, self.namespaces.of(own, id))?,
            // What all have in common is CNS 00h's alone.
            identify::ALLOCATED_NAMESPACE if self.manages() && id == ALL_NAMESPACES => {
                return Err(Status::INVALID_NAMESPACE);
            }
            identify::ALLOCATED_NAMESPACE if self.manages() => self.one_namespace(id, self.namespaces.allocated(id))?,
            identify::ALLOCATED_NAMESPACES if self.manages() => list(self.namespaces.ids(None), id)?,
            // Those of all namespaces are CNS 13h's.
            identify::NAMESPACE_CONTROLLERS if self.manages() && id == ALL_NAMESPACES => {
                return Err(Status::INVALID_FIELD);
            }
            identify::NAMESPACE_CONTROLLERS if self.manages() => {
                self.namespaces.allocated(id).ok_or(self.namespaces.missing(id))?;
                controllers(self.namespaces.controllers(Some(id)), submission)
            }
            identify::CONTROLLERS if self.manages() => controllers(self.namespaces.controllers(None), submission),
            // CNTLID, and no resource that it could lend (CRT): there are no secondary controllers.
            identify::PRIMARY_CAPABILITIES if self.manages() => own.to_le_bytes().to_vec(),
            identify::SECONDARY_CONTROLLERS if self.manages() => Vec::new(),
            identify::GRANULARITY if self.manages() => granularity(),
            identify::ENDURANCE_GROUPS if self.has_group() => groups_from(submission.dword(11) as u16),
            identify::CONTROLLER => self.identify_controller().as_bytes().to_vec(),
            identify::ACTIVE_NAMESPACES => list(self.namespaces.ids(Some(own)), id)?,
            identify::NAMESPACE_IDENTIFIERS => identifiers(namespace()?),
            identify::INDEPENDENT_NAMESPACE if is_inactive => Vec::new(),
            identify::INDEPENDENT_NAMESPACE => {
                namespace()?;
                let mut space = IndependentNamespace::default();
                space.set_state(NAMESPACE_READY).set_sharing(u8::from(self.settings.is_shared()));
                space.set_attributes(self.namespace_attributes());
                space.set_endurance_group(self.has_group().into()).as_bytes().to_vec()
            }
            identify::COMMAND_SETS if self.names_this(submission) => 1u64.to_le_bytes().to_vec(),
            // What the NVM command set says of a namespace is all zero: guards have 16 bits, and tags no storage part.
            _ if submission.dword(11) >> 24 != 0 => return Err(Status::INVALID_FIELD),
            identify::COMMAND_SET_NAMESPACE if is_inactive => Vec::new(),
            identify::COMMAND_SET_NAMESPACE => namespace().map(|_| Vec::new())?,
            identify::COMMAND_SET_ALLOCATED_NAMESPACE if self.manages() && self.is_identifier(id) => Vec::new(),
            identify::COMMAND_SET_ALLOCATED_NAMESPACE if self.manages() => return Err(Status::INVALID_NAMESPACE),
            identify::COMMAND_SET_ALLOCATED_NAMESPACES if self.manages() => list(self.namespaces.ids(None), id)?,
            identify::COMMAND_SET_CONTROLLER => {
                let pages = (RANGE_BYTES_MAX / PAGE_BYTES).ilog2() as u8;
                let mut limits = CommandSetController::default();
                // In blocks of the largest that a namespace has: with smaller ones a range is smaller than it might be.
                let blocks = self.namespaces.ids(Some(own)).filter_map(|id| self.namespaces.of(own, id));
                let block = blocks.map(|space| space.settings.block_bytes.into()).max().unwrap_or(PAGE_BYTES);
                limits
                    .set_ranges(DEALLOCATE_RANGES)
                    .set_range_blocks((DEALLOCATE_RANGE_BYTES / block) as u32)
                    .set_ranges_blocks(u64::from(DEALLOCATE_RANGES) * DEALLOCATE_RANGE_BYTES / block)
                    .set_verify_pages_log2(pages)
                    .set_zeroes_pages_log2(pages)
                    .set_uncorrectable_pages_log2(pages);
                limits.as_bytes().to_vec()
            }
            identify::COMMAND_SET_NAMESPACES => list(self.namespaces.ids(Some(own)), id)?,
            _ => return Err(Status::INVALID_FIELD),
        };
        data.resize(IDENTIFY_BYTES, 0);
        Ok(data)
    }

    /// Whether the drive takes no writes, for whatever reason: then each of its namespaces is write protected (NVM §4.1.5.1, NSATTR). A
    /// host that has seen them otherwise is told where it wants to know.
    pub fn set_write_protected(&mut self, is_protected: bool) {
        let turns = std::mem::replace(&mut self.is_write_protected, is_protected) != is_protected;
        if turns && self.is_ready() {
            let ids: Vec<u32> = self.namespaces.ids(Some(self.settings.controller_id)).collect();
            self.notice(ids);
        }
    }

    fn namespace_attributes(&self) -> u8 {
        if self.is_write_protected { WRITE_PROTECTED } else { 0 }
    }

    fn identify_controller(&self) -> IdentifyController {
        let settings = &self.settings;
        let [capacity, unallocated] = self.namespaces.bytes();
        let sizes = |bytes: u64| bytes.ilog2() as u8 | (bytes.ilog2() as u8) << 4;
        let keep_alive = settings.keep_alive.map_or(0, |step| (step.picos() / Span::from_millis(100).picos()) as u16);
        let is_discovery = settings.is_discovery();
        let mut controller = IdentifyController::default();
        controller
            .set_vendor(settings.vendor)
            .set_subsystem_vendor(settings.vendor)
            .set_serial(padded(&settings.serial, b' '))
            .set_model(padded(&settings.model, b' '))
            .set_firmware(padded(&settings.firmware, b' '))
            .set_recommended_burst(settings.burst_log2)
            .set_transfer_pages_log2(settings.transfer_max.map_or(0, |bytes| (bytes.0 / PAGE_BYTES).ilog2() as u8))
            .set_controller_id(settings.controller_id)
            .set_version(registers::VERSION)
            .set_controller_type(if is_discovery { DISCOVERY_CONTROLLER } else { IO_CONTROLLER })
            .set_sharing(u8::from(settings.is_shared()) << 1)
            .set_shutdown_micros(shutdown_micros(settings))
            .set_notices(settings.notices())
            .set_attributes(
                if settings.keep_alive.is_some() { TRAFFIC_KEEPS_ALIVE } else { 0 }
                    | if settings.is_shared() { WIDE_HOST_IDENTIFIERS } else { 0 }
                    | if self.manages() { NAMESPACE_GRANULARITY } else { 0 }
                    | self.groups(),
            )
            .set_endurance_groups(self.has_group().into())
            .set_optional_admin_commands(self.optional_admin_commands())
            .set_unallocated(unallocated)
            .set_self_test_minutes(u16::from(self.manages()) * SELF_TEST_MINUTES)
            .set_self_test_options(self.manages().into())
            .set_namespaces_max(self.namespaces.count())
            .set_event_request_limit((settings.event_requests_max - 1) as u8)
            .set_log_page_attributes(if is_discovery { OFFSETS } else { OFFSETS | EFFECTS })
            .set_error_log_entries(settings.error_log_entries - 1)
            .set_capacity(capacity)
            .set_keep_alive(keep_alive)
            .set_submission_sizes(sizes(SUBMISSION_BYTES))
            .set_completion_sizes(sizes(COMPLETION_BYTES))
            .set_commands_max(settings.queue_entries_max.min(0xffff) as u16)
            .set_namespaces(self.namespaces.count())
            .set_optional_commands(settings.optional_commands())
            .set_volatile_write_cache(write_cache(settings))
            // Wherever it begins, only a write of one block is atomic: a namespace says more, within boundaries.
            .set_atomic_write_blocks(0)
            .set_atomic_write_blocks_power_fail(0)
            .set_fused_operations(u16::from(settings.fuses()))
            .set_atomic_compare_blocks(0)
            .set_copy_formats(u16::from(!is_discovery && settings.commands.contains(&Opcode::Copy)))
            .set_subsystem(padded(&settings.subsystem, 0));
        self.tell_of_drive(&mut controller);
        match settings.transport {
            Transport::Memory if settings.memory_sgls => drop(controller.set_sgls(MEMORY_SGLS)),
            Transport::Memory => {}
            Transport::Message { capsule } => {
                controller
                    .set_sgls(MESSAGE_SGLS)
                    .set_command_capsule(((SUBMISSION_BYTES + capsule.0) / 16) as u32)
                    .set_response_capsule((COMPLETION_BYTES / 16) as u32)
                    .set_descriptors_max(1)
                    .set_optional_fabrics_commands(u16::from(!is_discovery));
            }
        }
        controller
    }

    /// What a controller for discovery has nothing of: firmware, temperature, power, and commands that can be aborted.
    fn tell_of_drive(&self, controller: &mut IdentifyController) {
        if self.settings.is_discovery() {
            return;
        }
        let [warning, critical] = self.settings.temperatures;
        controller
            .set_abort_limit(ABORT_LIMIT)
            .set_firmware_updates(FIRMWARE_UPDATES)
            .set_warning_temperature(warning)
            .set_critical_temperature(critical)
            .set_power_centiwatts(self.settings.power_centiwatts);
    }

    /// Whether CNTID names this controller, or none in particular.
    fn names_this(&self, submission: &Submission) -> bool {
        let asked = (submission.dword(10) >> 16) as u16;
        asked == ANY_CONTROLLER || asked == self.settings.controller_id
    }

    fn identify_namespace(&self, space: &Space) -> IdentifyNamespace {
        let settings = &space.settings;
        let mut namespace = IdentifyNamespace::default();
        let atomic = (self.atomic_blocks(settings) - 1) as u16;
        let compared = (self.compare_blocks(settings) - 1) as u16;
        namespace
            .set_features(ATOMIC_FIELDS | PREFERS)
            .set_atomic_write_blocks(atomic)
            .set_atomic_write_blocks_power_fail(atomic)
            .set_atomic_compare_blocks(if self.settings.fuses() { compared } else { 0 })
            .set_atomic_boundary(atomic)
            .set_atomic_boundary_power_fail(atomic)
            // Of a part of what is written as a whole the rest would be read first.
            .set_write_granularity(atomic)
            .set_write_alignment(atomic)
            .set_deallocate_granularity(atomic)
            .set_deallocate_alignment(atomic)
            .set_write_size(atomic)
            .set_size(settings.blocks)
            .set_capacity(settings.blocks)
            .set_used(self.namespaces.used_of(settings, self.used))
            .set_sharing(u8::from(self.settings.is_shared()))
            .set_deallocated(DEALLOCATED_READS_ZERO)
            .set_bytes(self.namespaces.bytes_of(space))
            .set_attributes(self.namespace_attributes())
            .set_nguid(settings.nguid)
            .set_eui64(settings.eui64)
            .set_endurance_group(self.has_group().into());
        self.set_formats(&mut namespace, Format::of(settings));
        if self.settings.commands.contains(&Opcode::Copy) {
            let blocks = (COPY_BYTES_MAX / u64::from(settings.block_bytes)) as u32;
            namespace.set_copy_range_blocks(blocks as u16).set_copy_blocks(blocks);
            namespace.set_copy_ranges((COPY_RANGES_MAX - 1) as u8);
        }
        namespace
    }

    /// CNS 00h or 11h: a namespace, or zeroes where there is none of an identifier that there may be. All identifiers together are
    /// what every namespace has in common (Base §5.17.2.1).
    fn one_namespace(&self, id: u32, space: Option<&Space>) -> Result<Vec<u8>, Status> {
        match space {
            Some(space) => Ok(self.identify_namespace(space).as_bytes().to_vec()),
            None if id == ALL_NAMESPACES && self.manages() => {
                let mut common = IdentifyNamespace::default();
                let first = self.namespaces.formats().next().expect("blocks of the drive are of a format");
                self.set_formats(&mut common, first);
                Ok(common.set_deallocated(DEALLOCATED_READS_ZERO).as_bytes().to_vec())
            }
            None if self.is_identifier(id) => Ok(Vec::new()),
            None => Err(Status::INVALID_NAMESPACE),
        }
    }

    /// Whether a namespace can have it.
    fn is_identifier(&self, id: u32) -> bool {
        (1..=self.namespaces.count()).contains(&id)
    }

    /// The formats there are and the one in use. Where none can be chosen, it is format 0.
    fn set_formats(&self, namespace: &mut IdentifyNamespace, format: Format) {
        let size =
            |format: Format| format.block_bytes.ilog2() << 16 | if format.metadata { METADATA_BYTES as u32 } else { 0 };
        if !self.manages() {
            namespace.set_format0(size(format));
            return;
        }
        let formats: Vec<Format> = self.namespaces.formats().collect();
        let is_used = |known: &Format| Format { protection: format.protection, ..*known } == format;
        let used = formats.iter().position(is_used).unwrap_or(0) as u8;
        let is_extended = format.metadata && self.settings.extends_blocks();
        namespace.set_format(used | u8::from(is_extended) << 4).set_formats((formats.len() - 1) as u8);
        let mut sizes = formats.into_iter().map(size);
        let [first, second, third, fourth] = [(); 4].map(|()| sizes.next().unwrap_or(0));
        namespace.set_format0(first).set_format1(second).set_format2(third).set_format3(fourth);
        if self.settings.metadata {
            namespace.set_metadata(if self.settings.extends_blocks() { 1 } else { 1 << 1 });
            namespace.set_protections(PROTECTIONS).set_protection(format.protection.code());
        }
    }

    /// Whether the device end does what Namespace Management and its like ask for.
    fn manages(&self) -> bool {
        self.settings.managed_namespaces > 0 && !self.settings.is_discovery()
    }

    fn optional_admin_commands(&self) -> u16 {
        let management = if self.manages() { MANAGEMENT } else { 0 };
        management | if self.offers(AdminOpcode::DoorbellBufferConfig) { SHADOW_DOORBELLS } else { 0 }
    }

    /// Whether there is an endurance group to tell of.
    pub(super) fn has_group(&self) -> bool {
        self.pages.contains_key(&log_page::ENDURANCE_GROUP)
    }

    fn groups(&self) -> u32 {
        if self.has_group() { ENDURANCE_GROUPS } else { 0 }
    }
}

/// RTD3E. A shutdown waits for what a reset waits for, where there is something to be written.
fn shutdown_micros(settings: &ControllerSettings) -> u32 {
    if !settings.volatile_write_cache || settings.is_discovery() {
        return 0;
    }
    (settings.ready_within.max(SHUTDOWN_LEAST).nanos() / 1_000).min(u64::from(u32::MAX)) as u32
}

/// VWC. A controller for discovery has none of the field (Base §5.17.2.1).
fn write_cache(settings: &ControllerSettings) -> u8 {
    match settings.volatile_write_cache {
        _ if settings.is_discovery() => 0,
        true => WRITE_CACHE,
        false => NO_WRITE_CACHE,
    }
}

/// Identifiers above `after`, at most as many as the structure holds.
fn list(ids: impl Iterator<Item = u32>, after: u32) -> Result<Vec<u8>, Status> {
    if after >= 0xffff_fffe {
        return Err(Status::INVALID_NAMESPACE);
    }
    Ok(ids.filter(|id| *id > after).take(IDENTIFY_BYTES / 4).flat_map(u32::to_le_bytes).collect())
}

/// Controllers from CNTID on, behind their number (Base §4.5.1).
fn controllers(ids: Vec<u16>, submission: &Submission) -> Vec<u8> {
    let from = (submission.dword(10) >> 16) as u16;
    let ids: Vec<u16> = ids.into_iter().filter(|id| *id >= from).collect();
    std::iter::once(ids.len() as u16).chain(ids).flat_map(u16::to_le_bytes).collect()
}

/// Endurance groups from `first` on, behind their number: there is group 1.
fn groups_from(first: u16) -> Vec<u8> {
    let list: &[u16] = if first <= 1 { &[1, 1] } else { &[0] };
    list.iter().copied().flat_map(u16::to_le_bytes).collect()
}

/// One descriptor for all formats: size and capacity go in the same steps (NVM §4.1.5.6).
fn granularity() -> Vec<u8> {
    let mut structure = vec![0; 32];
    structure.extend([GRANULE_BYTES; 2].into_iter().flat_map(u64::to_le_bytes));
    structure
}

/// Descriptors of type, length, two reserved bytes and the identifier: 1 EUI64, 2 NGUID, 4 the command set, which is NVM
/// (Base §5.17.2.3).
fn identifiers(settings: &NamespaceSettings) -> Vec<u8> {
    let mut list = vec![2, 16, 0, 0];
    list.extend_from_slice(&settings.nguid);
    if settings.eui64 != [0; 8] {
        list.extend_from_slice(&[1, 8, 0, 0]);
        list.extend_from_slice(&settings.eui64);
    }
    list.extend_from_slice(&[4, 1, 0, 0, 0]);
    list
}
