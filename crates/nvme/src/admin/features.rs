//! Features: what the host has set, and what it may (Base §5.15 and §5.27).

use super::{AdminReply, AsynchronousEvent};
use crate::spec::{ALL_NAMESPACES, FeatureId, FeatureSelect, Status, Submission};
use crate::{Controller, ControllerSettings, DeviceEvent, Transport};
use std::collections::BTreeMap;
use units::Span;

/// The value of every feature.
#[derive(Debug)]
pub(crate) struct Features {
    /// Those of a single value, by their place in [`FeatureId::ALL`].
    values: [u32; FeatureId::ALL.len()],
    /// Composite temperature to be told above, and below, in kelvin.
    temperatures: [u16; 2],
    /// How long reading a block may be tried again, in tenths of a second, by namespace; without one, for all others. 0 is for ever. The
    /// tables of retries that flash has take less than the shortest of these times, so that each is kept.
    retry_limits: BTreeMap<Option<u32>, u16>,
    /// Vectors exempt from coalescing.
    exempt: Box<[bool]>,
    volatile_write_cache: bool,
    keep_alive: Option<Span>,
    is_discovery: bool,
    /// Whether completions are told by interrupts, which a fabric does not have.
    interrupts: bool,
    /// Events that a host may want to be told of: warnings of its health, and notices that OAES announces.
    told: u32,
    /// Whether there is the host identifier of a fabric.
    has_host: bool,
}

/// Health warnings in the Asynchronous Event Configuration (Base §5.27.1.8).
const WARNINGS: u32 = 0xff;

/// Changeable, neither saveable nor of a namespace (Base §5.15, result of Select 3).
const CAPABILITIES: u64 = 1 << 2;

/// The same of a feature that each namespace has.
const NAMESPACE_CAPABILITIES: u64 = CAPABILITIES | 1 << 1;

/// EXHID of Host Identifier: 128 bits, the only kind that there is over a fabric (Base §5.27.1.25).
const EXTENDED_HOST_ID: u32 = 1;

/// DULBE of Error Recovery: reads of deallocated blocks are errors, which no namespace offers (NVM §4.1.3.2).
const DEALLOCATED_ARE_ERRORS: u32 = 1 << 16;

/// TMPSEL of Temperature Threshold: which temperature is meant (Base §5.27.1.3).
const TEMPERATURES: u32 = 0xf << 16;

/// The bits of dword 11 that a feature of a single value keeps.
const fn kept_bits(feature: FeatureId) -> u32 {
    match feature {
        FeatureId::Arbitration => 0xffff_ff07,
        FeatureId::PowerManagement => 0xff,
        FeatureId::VolatileWriteCache | FeatureId::WriteAtomicity => 1,
        FeatureId::InterruptCoalescing => 0xffff,
        FeatureId::CommandSetProfile => 0x1ff,
        FeatureId::NumberOfQueues
        | FeatureId::KeepAliveTimer
        | FeatureId::TemperatureThreshold
        | FeatureId::ErrorRecovery
        | FeatureId::AsynchronousEventConfiguration
        | FeatureId::HostIdentifier
        | FeatureId::InterruptVectorConfiguration => u32::MAX,
    }
}

impl Features {
    /// As after a reset. Every health warning is reported: a host that wants none says so. A controller for discovery has no health.
    pub(crate) fn new(settings: &ControllerSettings) -> Self {
        let queues = u32::from(settings.io_queues_max - 1);
        let is_discovery = settings.is_discovery();
        let value = |feature: &FeatureId| match feature {
            FeatureId::Arbitration => u32::from(settings.burst_log2),
            FeatureId::VolatileWriteCache => u32::from(settings.volatile_write_cache),
            FeatureId::NumberOfQueues => queues << 16 | queues,
            FeatureId::AsynchronousEventConfiguration if !is_discovery => 0x1f,
            _ => 0,
        };
        Features {
            values: std::array::from_fn(|at| value(&FeatureId::ALL[at])),
            temperatures: [settings.temperatures[0], 0],
            retry_limits: BTreeMap::new(),
            exempt: vec![false; usize::from(settings.vectors)].into(),
            volatile_write_cache: settings.volatile_write_cache,
            keep_alive: settings.keep_alive,
            is_discovery,
            interrupts: settings.transport == Transport::Memory,
            told: settings.notices() | if is_discovery { 0 } else { WARNINGS },
            has_host: settings.is_shared(),
        }
    }

    /// As after a reset, but for the keep alive timer, which a fabric's host set with its Connect.
    pub(crate) fn reset(&mut self, settings: &ControllerSettings) {
        let timer = self.value(FeatureId::KeepAliveTimer, 0);
        *self = Features::new(settings);
        self.values[Self::place(FeatureId::KeepAliveTimer)] = timer;
    }

    pub(crate) fn set_keep_alive(&mut self, milliseconds: u32) {
        let step = self.keep_alive.map_or(1, |granularity| (granularity.nanos() / 1_000_000) as u32).max(1);
        self.values[Self::place(FeatureId::KeepAliveTimer)] = milliseconds.div_ceil(step).saturating_mul(step);
    }

    /// What Number of Queues says from now on.
    fn offer_queues(&mut self, queues: u16) {
        let last = u32::from(queues.max(1) - 1);
        self.values[Self::place(FeatureId::NumberOfQueues)] = last << 16 | last;
    }

    fn place(feature: FeatureId) -> usize {
        FeatureId::ALL.iter().position(|known| *known == feature).expect("every feature is in the list")
    }

    /// The value of a feature that has only one, or of the part `dword11` names.
    pub(crate) fn value(&self, feature: FeatureId, dword11: u32) -> u32 {
        match feature {
            FeatureId::TemperatureThreshold => u32::from(self.temperatures[(dword11 >> 20 & 1) as usize]),
            FeatureId::InterruptVectorConfiguration => {
                let vector = dword11 as u16;
                u32::from(vector) | u32::from(self.exempt_from_coalescing(vector)) << 16
            }
            _ => self.values[Self::place(feature)],
        }
    }

    /// Error Recovery of a namespace.
    fn error_recovery(&self, namespace: u32) -> u32 {
        let own = self.retry_limits.get(&Some(namespace));
        own.or_else(|| self.retry_limits.get(&None)).copied().unwrap_or(0).into()
    }

    /// Changes it; without a namespace, of all.
    fn set_error_recovery(&mut self, namespace: Option<u32>, value: u32) -> Result<(), Status> {
        if value & DEALLOCATED_ARE_ERRORS != 0 {
            return Err(Status::INVALID_FIELD);
        }
        if namespace.is_none() {
            self.retry_limits.clear();
        }
        self.retry_limits.insert(namespace, value as u16);
        Ok(())
    }

    /// Forgets what is of namespaces that are no longer there.
    pub(crate) fn keep_namespaces(&mut self, are_there: impl Fn(u32) -> bool) {
        self.retry_limits.retain(|namespace, _| namespace.is_none_or(&are_there));
    }

    /// Writes last from now on when they are answered.
    pub(crate) fn turn_write_cache_off(&mut self) {
        self.values[Self::place(FeatureId::VolatileWriteCache)] = 0;
    }

    /// Health warnings that the host wants to be told of.
    pub(crate) fn reported_warnings(&self) -> u8 {
        self.value(FeatureId::AsynchronousEventConfiguration, 0) as u8
    }

    /// Whether the host wants to be told of namespaces that change (Base §5.27.1.8, bit 8).
    pub(crate) fn wants_namespace_notices(&self) -> bool {
        self.value(FeatureId::AsynchronousEventConfiguration, 0) >> 8 & 1 != 0
    }

    /// Whether a composite temperature is one the host wants to be told of; 0 is a device that does not know its own.
    pub(crate) fn is_outside_thresholds(&self, kelvin: u16) -> bool {
        kelvin != 0 && (kelvin >= self.temperatures[0] || kelvin <= self.temperatures[1])
    }

    pub(crate) fn exempt_from_coalescing(&self, vector: u16) -> bool {
        self.exempt.get(usize::from(vector)).is_some_and(|exempt| *exempt)
    }

    /// Whether the feature is there: of a controller for discovery what its host keeps the connection and hears of news by, and without
    /// interrupts none of theirs (Base 2.3, figure 32).
    pub(super) fn has(&self, feature: FeatureId) -> bool {
        match feature {
            FeatureId::AsynchronousEventConfiguration => true,
            FeatureId::KeepAliveTimer => self.keep_alive.is_some(),
            _ if self.is_discovery => false,
            FeatureId::InterruptCoalescing | FeatureId::InterruptVectorConfiguration => self.interrupts,
            FeatureId::VolatileWriteCache => self.volatile_write_cache,
            FeatureId::HostIdentifier => self.has_host,
            _ => true,
        }
    }

    /// Whether it is, and the part of it that `dword11` names.
    fn check(&self, feature: FeatureId, dword11: u32) -> Result<(), Status> {
        let has_part = match feature {
            FeatureId::InterruptVectorConfiguration => usize::from(dword11 as u16) < self.exempt.len(),
            // TMPSEL 0 is the composite temperature, the only one there is; THSEL 0 is over and 1 under.
            FeatureId::TemperatureThreshold => dword11 & TEMPERATURES == 0 && dword11 >> 20 & 3 <= 1,
            _ => true,
        };
        if has_part && self.has(feature) { Ok(()) } else { Err(Status::INVALID_FIELD) }
    }

    fn set(&mut self, feature: FeatureId, mut dword11: u32) -> Result<(), Status> {
        if feature == FeatureId::TemperatureThreshold && dword11 & TEMPERATURES == TEMPERATURES {
            // All temperatures there are, which can be set at once and not read (Base §5.27.1.3).
            dword11 &= !TEMPERATURES;
        }
        self.check(feature, dword11)?;
        match feature {
            FeatureId::TemperatureThreshold => self.temperatures[(dword11 >> 20 & 1) as usize] = dword11 as u16,
            FeatureId::InterruptVectorConfiguration => {
                self.exempt[usize::from(dword11 as u16)] = dword11 >> 16 & 1 != 0;
            }
            // There is one power state.
            FeatureId::PowerManagement if dword11 & 0x1f != 0 => return Err(Status::INVALID_FIELD),
            FeatureId::AsynchronousEventConfiguration if dword11 & !self.told != 0 => {
                return Err(Status::INVALID_FIELD);
            }
            // There is one combination, and a host's identifier comes with Connect.
            FeatureId::CommandSetProfile if dword11 & 0x1ff != 0 => return Err(Status::INVALID_FIELD),
            FeatureId::HostIdentifier => return Err(Status::COMMAND_SEQUENCE_ERROR),
            FeatureId::KeepAliveTimer => self.set_keep_alive(dword11),
            _ => self.values[Self::place(feature)] = dword11 & kept_bits(feature),
        }
        Ok(())
    }
}

impl Controller {
    pub(super) fn get_features(&self, submission: &Submission) -> Result<AdminReply, Status> {
        let feature = FeatureId::of(submission).ok_or(Status::INVALID_FIELD)?;
        let dword11 = submission.dword(11);
        self.features.check(feature, dword11)?;
        let select = FeatureSelect::of(submission).ok_or(Status::INVALID_FIELD)?;
        if feature == FeatureId::HostIdentifier {
            self.check_identifier(submission.namespace())?;
            return match select {
                // Connect says who the host is, so that it cannot be changed, and a reset leaves it.
                FeatureSelect::Capabilities => Ok(AdminReply::success(0)),
                _ if dword11 & EXTENDED_HOST_ID == 0 => Err(Status::INVALID_FIELD),
                _ => Ok(AdminReply::data(self.host_id.to_vec())),
            };
        }
        if feature == FeatureId::ErrorRecovery {
            let namespace = submission.namespace();
            self.check_namespace(namespace)?;
            return Ok(AdminReply::success(match select {
                FeatureSelect::Current => self.features.error_recovery(namespace).into(),
                FeatureSelect::Default | FeatureSelect::Saved => 0,
                FeatureSelect::Capabilities => NAMESPACE_CAPABILITIES,
            }));
        }
        self.check_identifier(submission.namespace())?;
        let result = match select {
            FeatureSelect::Current => u64::from(self.features.value(feature, dword11)),
            FeatureSelect::Default | FeatureSelect::Saved => {
                u64::from(Features::new(&self.settings).value(feature, dword11))
            }
            FeatureSelect::Capabilities => CAPABILITIES,
        };
        Ok(AdminReply::success(result))
    }

    pub(super) fn set_features(&mut self, submission: &Submission) -> Result<AdminReply, Status> {
        let feature = FeatureId::of(submission).filter(|feature| self.features.has(*feature));
        let feature = feature.ok_or(Status::INVALID_FIELD)?;
        if submission.dword(10) >> 31 != 0 {
            return Err(Status::FEATURE_NOT_SAVEABLE);
        }
        let namespace = submission.namespace();
        let mut value = submission.dword(11);
        if feature == FeatureId::ErrorRecovery {
            let one = Some(namespace).filter(|id| *id != ALL_NAMESPACES);
            one.map_or(Ok(()), |id| self.check_namespace(id))?;
            self.features.set_error_recovery(one, value)?;
            self.events.push_back(DeviceEvent::FeatureChanged(feature));
            return Ok(AdminReply::success(0));
        }
        self.check_identifier(namespace)?;
        if ![0, ALL_NAMESPACES].contains(&namespace) {
            return Err(Status::FEATURE_NOT_NAMESPACE_SPECIFIC);
        }
        let mut result = 0;
        if feature == FeatureId::NumberOfQueues {
            value = self.grant_queues(value)?;
            result = u64::from(value);
        }
        let is_volatile = feature == FeatureId::VolatileWriteCache && self.features.value(feature, 0) != 0;
        // Where somebody carries it out; a driver in the same process sets nothing.
        if is_volatile && value & 1 == 0 && self.settings.managed_namespaces > 0 {
            let command_id = submission.command_id();
            self.events.push_back(DeviceEvent::Settle { command_id });
            self.settling.push(command_id);
            return Ok(AdminReply::Held);
        }
        let before = self.features.reported_warnings();
        self.features.set(feature, value)?;
        if feature == FeatureId::AsynchronousEventConfiguration {
            let (warnings, notices) = (self.features.reported_warnings(), self.features.wants_namespace_notices());
            self.requests.keep(|event| event.is_wanted(warnings, notices));
            // Of a warning that stands its host has not heard.
            for event in AsynchronousEvent::of_warnings(self.health.critical_warning() & warnings & !before) {
                self.raise(event);
            }
        }
        self.events.push_back(DeviceEvent::FeatureChanged(feature));
        Ok(AdminReply::success(result))
    }

    /// Whether this controller has a namespace that a feature is asked of; all together are none.
    fn check_namespace(&self, id: u32) -> Result<(), Status> {
        let there = self.namespaces.of(self.settings.controller_id, id).map(drop);
        there.ok_or_else(|| self.namespaces.missing(id))
    }

    /// Whether a namespace can have it, or it names none or all of them: of what is no feature of a namespace (Base §3.2.1.2).
    fn check_identifier(&self, id: u32) -> Result<(), Status> {
        let is_known = id <= self.namespaces.count() || id == ALL_NAMESPACES;
        if is_known { Ok(()) } else { Err(Status::INVALID_NAMESPACE) }
    }

    /// What was answered before the volatile write cache was to be turned off is durable, or could not be made so: then it stays on.
    pub fn on_settled(&mut self, command_id: u16, durable: bool) {
        let Some(at) = self.settling.iter().position(|waiting| *waiting == command_id) else { return };
        self.settling.swap_remove(at);
        if durable {
            self.features.turn_write_cache_off();
            self.events.push_back(DeviceEvent::FeatureChanged(FeatureId::VolatileWriteCache));
        }
        self.end_held(command_id, 0, if durable { Status::SUCCESS } else { Status::WRITE_FAULT });
    }

    /// Whether writes may complete in volatile memory now: not once the host wants it off, though it is off only when all before is
    /// durable.
    pub fn write_cache_enabled(&self) -> bool {
        self.features.value(FeatureId::VolatileWriteCache, 0) & 1 != 0 && self.settling.is_empty()
    }

    /// So many queues of each kind would be granted to a host that has not said yet how many it wants, which is what it is told if it asks:
    /// where others share the queues, that changes (Base §5.27.1.5).
    pub fn offer_queues(&mut self, queues: u16) {
        self.features.offer_queues(queues);
    }

    /// Number of Queues: what was asked for and what is granted, both from zero (Base §5.27.1.5).
    fn grant_queues(&mut self, asked: u32) -> Result<u32, Status> {
        let (submissions, completions) = (asked & 0xffff, asked >> 16);
        if submissions == 0xffff || completions == 0xffff {
            return Err(Status::INVALID_FIELD);
        }
        if self.queues.any() {
            return Err(Status::COMMAND_SEQUENCE_ERROR);
        }
        let [submissions, completions] = self.queues.grant(submissions + 1, completions + 1).map(u32::from);
        Ok((completions - 1) << 16 | (submissions - 1))
    }
}
