//! Identify: the structures, made from the settings (Base §5.17).

use crate::spec::fabrics::ANY_CONTROLLER;
use crate::spec::identify::{
    self, IDENTIFY_BYTES, IdentifyController, IdentifyNamespace, IndependentNamespace, padded,
};
use crate::spec::{
    COMPLETION_BYTES, COPY_BYTES_MAX, COPY_RANGES_MAX, Opcode, PAGE_BYTES, SUBMISSION_BYTES, Status, Submission,
    registers,
};
use crate::{Controller, NamespaceSettings, Transport};
use units::Span;

/// LPA: Commands Supported and Effects, and offsets into pages (Base §5.17.2.1).
const EFFECTS: u8 = 1 << 1;
const OFFSETS: u8 = 1 << 2;
/// FRMW: one slot, read only.
const FIRMWARE_UPDATES: u8 = 1 | 1 << 1;
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
/// CTRATT: traffic-based keep alive.
const TRAFFIC_KEEPS_ALIVE: u32 = 1 << 6;
/// SGLS: SGLs without alignment, offsets into the capsule, transport descriptors.
const MESSAGE_SGLS: u32 = 1 | 1 << 20 | 1 << 21;
/// NSFEAT: the namespace has atomic write fields of its own.
const ATOMIC_FIELDS: u8 = 1 << 1;
/// NSTAT: ready.
const NAMESPACE_READY: u8 = 1;

impl Controller {
    pub(super) fn identify(&self, submission: &Submission) -> Result<Vec<u8>, Status> {
        let namespace = || self.settings.namespace(submission.namespace()).ok_or(Status::INVALID_NAMESPACE);
        let mut data = match submission.dword(10) as u8 {
            identify::NAMESPACE => self.identify_namespace(namespace()?).as_bytes().to_vec(),
            identify::CONTROLLER => self.identify_controller().as_bytes().to_vec(),
            identify::ACTIVE_NAMESPACES => self.active_namespaces(submission.namespace())?,
            identify::NAMESPACE_IDENTIFIERS => identifiers(namespace()?),
            identify::INDEPENDENT_NAMESPACE => {
                namespace()?;
                let mut space = IndependentNamespace::default();
                space.set_state(NAMESPACE_READY).set_sharing(u8::from(self.settings.is_shared())).as_bytes().to_vec()
            }
            identify::COMMAND_SETS if self.names_this(submission) => 1u64.to_le_bytes().to_vec(),
            // The structures of command sets are all zero for the NVM command set: no protection types, no limits
            // beyond MDTS.
            _ if submission.dword(11) >> 24 != 0 => return Err(Status::INVALID_FIELD),
            identify::COMMAND_SET_NAMESPACE => {
                namespace()?;
                Vec::new()
            }
            identify::COMMAND_SET_CONTROLLER => Vec::new(),
            identify::COMMAND_SET_NAMESPACES => self.active_namespaces(submission.namespace())?,
            _ => return Err(Status::INVALID_FIELD),
        };
        data.resize(IDENTIFY_BYTES, 0);
        Ok(data)
    }

    fn identify_controller(&self) -> IdentifyController {
        let settings = &self.settings;
        let capacity = settings.namespaces.iter().map(|space| u128::from(space.blocks) * u128::from(space.block_bytes));
        let sizes = |bytes: u64| bytes.ilog2() as u8 | (bytes.ilog2() as u8) << 4;
        let keep_alive = settings.keep_alive.map_or(0, |step| (step.picos() / Span::from_millis(100).picos()) as u16);
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
            .set_controller_type(if settings.is_discovery() { DISCOVERY_CONTROLLER } else { IO_CONTROLLER })
            .set_sharing(u8::from(settings.is_shared()) << 1)
            .set_notices(settings.notices())
            .set_attributes(if settings.keep_alive.is_some() { TRAFFIC_KEEPS_ALIVE } else { 0 })
            .set_namespaces_max(settings.namespaces.len() as u32)
            .set_abort_limit(ABORT_LIMIT)
            .set_event_request_limit((settings.event_requests_max - 1) as u8)
            .set_firmware_updates(FIRMWARE_UPDATES)
            .set_log_page_attributes(if settings.is_discovery() { OFFSETS } else { OFFSETS | EFFECTS })
            .set_error_log_entries(settings.error_log_entries - 1)
            .set_warning_temperature(settings.temperatures[0])
            .set_critical_temperature(settings.temperatures[1])
            .set_capacity(capacity.sum())
            .set_keep_alive(keep_alive)
            .set_submission_sizes(sizes(SUBMISSION_BYTES))
            .set_completion_sizes(sizes(COMPLETION_BYTES))
            .set_commands_max(settings.queue_entries_max.min(0xffff) as u16)
            .set_namespaces(settings.namespaces.len() as u32)
            .set_optional_commands(settings.optional_commands())
            .set_volatile_write_cache(if settings.volatile_write_cache { WRITE_CACHE } else { NO_WRITE_CACHE })
            // Wherever it begins, only a write of one block is atomic: a namespace says more, within boundaries.
            .set_atomic_write_blocks(0)
            .set_atomic_write_blocks_power_fail(0)
            .set_fused_operations(u16::from(settings.fuses()))
            .set_atomic_compare_blocks(0)
            .set_copy_formats(u16::from(settings.commands.contains(&Opcode::Copy)))
            .set_subsystem(padded(&settings.subsystem, 0))
            .set_power_centiwatts(settings.power_centiwatts);
        if let Transport::Message { capsule } = settings.transport {
            controller
                .set_sgls(MESSAGE_SGLS)
                .set_command_capsule(((SUBMISSION_BYTES + capsule.0) / 16) as u32)
                .set_response_capsule((COMPLETION_BYTES / 16) as u32)
                .set_descriptors_max(1);
        }
        controller
    }

    /// Whether CNTID names this controller, or none in particular.
    fn names_this(&self, submission: &Submission) -> bool {
        let asked = (submission.dword(10) >> 16) as u16;
        asked == ANY_CONTROLLER || asked == self.settings.controller_id
    }

    fn identify_namespace(&self, settings: &NamespaceSettings) -> IdentifyNamespace {
        let mut namespace = IdentifyNamespace::default();
        let atomic = (self.settings.atomic_write_blocks - 1) as u16;
        namespace
            .set_features(ATOMIC_FIELDS)
            .set_atomic_write_blocks(atomic)
            .set_atomic_write_blocks_power_fail(atomic)
            .set_atomic_compare_blocks(if self.settings.fuses() { atomic } else { 0 })
            .set_atomic_boundary(atomic)
            .set_atomic_boundary_power_fail(atomic)
            .set_size(settings.blocks)
            .set_capacity(settings.blocks)
            .set_used(settings.blocks)
            .set_sharing(u8::from(self.settings.is_shared()))
            .set_deallocated(DEALLOCATED_READS_ZERO)
            .set_bytes(u128::from(settings.blocks) * u128::from(settings.block_bytes))
            .set_nguid(settings.nguid)
            .set_eui64(settings.eui64)
            .set_format0(settings.block_bytes.ilog2() << 16);
        if self.settings.commands.contains(&Opcode::Copy) {
            let blocks = (COPY_BYTES_MAX / u64::from(settings.block_bytes)) as u32;
            namespace.set_copy_range_blocks(blocks as u16).set_copy_blocks(blocks);
            namespace.set_copy_ranges((COPY_RANGES_MAX - 1) as u8);
        }
        namespace
    }

    /// Identifiers above `after`, at most as many as the structure holds.
    fn active_namespaces(&self, after: u32) -> Result<Vec<u8>, Status> {
        if after >= 0xffff_fffe {
            return Err(Status::INVALID_NAMESPACE);
        }
        let last = self.settings.namespaces.len() as u32;
        Ok((after + 1..=last).take(IDENTIFY_BYTES / 4).flat_map(u32::to_le_bytes).collect())
    }
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
