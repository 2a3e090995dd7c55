//! Get Log Page: the pages, and which part of one the host wants (Base §5.16).

use crate::spec::fabrics::DiscoveryHeader;
use crate::spec::identify::{IDENTIFY_BYTES, padded};
use crate::spec::log_page::{self, EnduranceGroupPage, FirmwarePage};
use crate::spec::registers::Configuration;
use crate::spec::{ALL_NAMESPACES, AdminOpcode, FeatureId, Opcode, Status, Submission};
use crate::{Controller, Role};

/// Command effects: supported, and changes what the media hold (Base §5.16.1.6).
const SUPPORTED: u32 = 1;
const CHANGES_BLOCKS: u32 = 1 << 1;
/// Changes what a namespace is like (NCC), and which there are (NIC).
const CHANGES_NAMESPACE: u32 = 1 << 2;
const CHANGES_INVENTORY: u32 = 1 << 3;
/// To be sent when no other command to its namespace is outstanding (CSE 001b).
const ALONE_IN_NAMESPACE: u32 = 1 << 16;
/// Feature effects: supported, with the controller as its scope (Base §5.16.1.18).
const CONTROLLER_FEATURE: u32 = 1 | 1 << 21;
/// The same with each namespace as its scope.
const NAMESPACE_FEATURE: u32 = 1 | 1 << 20;

impl Controller {
    pub(super) fn get_log_page(&self, submission: &Submission) -> Result<Vec<u8>, Status> {
        let id = submission.dword(10) as u8;
        let (offset, bytes) = part(submission);
        // Of what command set it is to be (CSI) is looked at where a page is of one (Base figure 202), and where the host has not chosen
        // one for all (CC.CSS).
        let chooses = self.configuration.command_sets() == Configuration::ALL_COMMAND_SETS;
        let command_set = if chooses { submission.dword(14) >> 24 } else { 0 };
        let mut page = self.log_page(id, command_set)?;
        // The group stands in LSI, and there is one.
        if id == log_page::ENDURANCE_GROUP && submission.dword(11) >> 16 != 1 {
            return Err(Status::INVALID_FIELD);
        }
        // All are of the controller or the subsystem, health too (LPA bit 0), and such are asked for without a namespace
        // (Base §5.16.1).
        if ![0, ALL_NAMESPACES].contains(&submission.namespace()) {
            return Err(Status::INVALID_FIELD);
        }
        // An index offset (OT) is for pages that have one; none here does.
        let index_offset = submission.dword(14) >> 23 & 1;
        if offset % 4 != 0 || offset > page.len() as u64 || index_offset != 0 {
            return Err(Status::INVALID_FIELD);
        }
        // Where it ends there is nothing more, which may be asked for (Base §5.16, LPOL).
        page.drain(..offset as usize);
        // What lies beyond the page is undefined, so it is left as it is in the host's memory.
        page.truncate(bytes.min(page.len() as u64) as usize);
        Ok(page)
    }

    /// The host has the data of [`crate::AdminReply::Transfer`]: what it has read of need not be told again, unless it retains the event
    /// (RAE).
    pub fn on_transferred(&mut self, submission: &Submission) {
        let retains_event = submission.dword(10) >> 15 & 1 != 0;
        if submission.opcode() != AdminOpcode::GetLogPage as u8 || retains_event {
            return;
        }
        let id = submission.dword(10) as u8;
        if id == log_page::CHANGED_NAMESPACES {
            let (offset, bytes) = part(submission);
            let list = self.changed_list();
            let told =
                list.chunks_exact(4).zip((0..).step_by(4)).filter(|(_, at)| *at >= offset && at + 4 <= offset + bytes);
            let told: Vec<u32> = told.map(|(id, _)| u32::from_le_bytes(id.try_into().expect("four bytes"))).collect();
            self.changed.retain(|id| !told.contains(id));
        }
        self.requests.read_about(id);
    }

    /// Namespaces that changed since the host read of them.
    fn changed_list(&self) -> Vec<u8> {
        let mut list: Vec<u8> = self.changed.iter().copied().flat_map(u32::to_le_bytes).collect();
        list.resize(IDENTIFY_BYTES, 0);
        list
    }

    fn log_page(&self, id: u8, command_set: u32) -> Result<Vec<u8>, Status> {
        let errors = u128::from(self.errors.total());
        if let Some(page) = self.pages.get(&id) {
            return Ok(match id {
                // The one group is the drive, and its errors are those that the health page counts.
                log_page::ENDURANCE_GROUP => {
                    EnduranceGroupPage::from_bytes(page).set_error_entries(errors).as_bytes().to_vec()
                }
                _ => page.clone(),
            });
        }
        if !self.fixed_pages().contains(&id) {
            return Err(Status::INVALID_LOG_PAGE);
        }
        match id {
            log_page::SUPPORTED_PAGES => {
                let all = self.fixed_pages().iter().chain(self.pages.keys());
                Ok(table(256, all.map(|id| (usize::from(*id), SUPPORTED))))
            }
            log_page::ERRORS => Ok(self.errors.page()),
            log_page::HEALTH => {
                let mut health = self.health.clone();
                Ok(health.set_error_entries(errors).as_bytes().to_vec())
            }
            log_page::FIRMWARE => {
                let mut firmware = FirmwarePage::default();
                Ok(firmware.set_active(1).set_slot1(padded(&self.settings.firmware, b' ')).as_bytes().to_vec())
            }
            log_page::CHANGED_NAMESPACES => Ok(self.changed_list()),
            log_page::DISCOVERY => Ok(self.discovery()),
            log_page::EFFECTS => Ok(self.effects(command_set)),
            log_page::FEATURES => {
                let effects = |feature: &FeatureId| match feature {
                    FeatureId::ErrorRecovery => NAMESPACE_FEATURE,
                    _ => CONTROLLER_FEATURE,
                };
                let there = FeatureId::ALL.iter().filter(|feature| self.features.has(**feature));
                Ok(table(256, there.map(|feature| (*feature as usize, effects(feature)))))
            }
            _ => Err(Status::INVALID_LOG_PAGE),
        }
    }

    /// Those that a controller writes itself.
    fn fixed_pages(&self) -> &'static [u8] {
        if self.settings.is_discovery() { log_page::OF_DISCOVERY } else { log_page::ALL }
    }

    /// The entries never change while a controller lives, so the generation stays.
    fn discovery(&self) -> Vec<u8> {
        let Role::Discovery(entries) = &self.settings.role else { return Vec::new() };
        let mut header = DiscoveryHeader::default();
        header.set_generation(1).set_entries(entries.len() as u64);
        let entries = entries.iter().flat_map(|entry| entry.as_bytes());
        header.as_bytes().iter().chain(entries).copied().collect()
    }

    /// Admin commands by opcode, then I/O commands of a command set: NVM (0) has some, and no other has (Base §5.16.1.6).
    fn effects(&self, command_set: u32) -> Vec<u8> {
        let admin = AdminOpcode::ALL.iter().filter(|opcode| self.offers(**opcode));
        let effect = |opcode: &Opcode| if opcode.changes_media() { SUPPORTED | CHANGES_BLOCKS } else { SUPPORTED };
        let commands: &[Opcode] = if command_set == 0 { &self.settings.commands } else { &[] };
        let io = commands.iter().map(|opcode| (256 + *opcode as usize, effect(opcode)));
        let admin_effect = |opcode: &AdminOpcode| match opcode {
            AdminOpcode::FormatNvm => SUPPORTED | CHANGES_BLOCKS | CHANGES_NAMESPACE | ALONE_IN_NAMESPACE,
            AdminOpcode::NamespaceManagement | AdminOpcode::NamespaceAttachment => SUPPORTED | CHANGES_INVENTORY,
            _ => SUPPORTED,
        };
        table(1024, admin.map(|opcode| (*opcode as usize, admin_effect(opcode))).chain(io))
    }
}

/// Where in a page the part begins that a Get Log Page asks for, and how long it is.
fn part(submission: &Submission) -> (u64, u64) {
    let offset = u64::from(submission.dword(13)) << 32 | u64::from(submission.dword(12));
    (offset, submission.log_bytes())
}

/// A page of `places` dwords, of which these are not zero.
fn table(places: usize, entries: impl Iterator<Item = (usize, u32)>) -> Vec<u8> {
    let mut page = vec![0; 4 * places];
    for (place, entry) in entries {
        page[4 * place..4 * place + 4].copy_from_slice(&entry.to_le_bytes());
    }
    page
}
