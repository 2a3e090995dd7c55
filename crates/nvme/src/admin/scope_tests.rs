//! Which namespaces, and how much of a page, commands may name.

use super::tests::{data, ready_with, result, status};
use super::*;
use crate::namespaces::Change;
use crate::settings::tests::example;
use crate::spec::identify;
use crate::spec::registers::{self, Configuration};
use crate::spec::{ALL_NAMESPACES, DataPointer, FeatureId, FeatureSelect, log_page};
use crate::{ControllerSettings, Namespaces, Role};
use std::sync::Arc;

const NOWHERE: DataPointer = DataPointer { prp1: units::HostAddress(0), prp2: units::HostAddress(0) };

/// A controller of a drive that can have four namespaces, and has one.
fn managed() -> Controller {
    ready_with(ControllerSettings { managed_namespaces: 4, ..example() })
}

/// The same with two small namespaces, of which it has the first.
fn with_two() -> Controller {
    let mut controller = managed();
    let mut all = Namespaces::clone(controller.namespaces());
    all.begin_change(1, Change::Deleted).unwrap();
    all.on_erased(1, true);
    let format = all.formats().next().unwrap();
    assert_eq!([0; 2].map(|_| all.create(2048, format)), [Ok(1), Ok(2)]);
    all.attach(1, &[controller.settings().controller_id], true).unwrap();
    controller.set_namespaces(&Arc::new(all));
    controller
}

/// As Set Features does; Linux names the namespace that it asks by.
#[test]
fn a_feature_is_told_for_every_namespace_that_there_can_be() {
    let mut controller = managed();
    for feature in [FeatureId::Arbitration, FeatureId::TemperatureThreshold] {
        let of = |id| Submission::get_features(feature, FeatureSelect::Current).with_dword(1, id);
        let told = result(&mut controller, of(0));
        for id in [1, 4, ALL_NAMESPACES] {
            assert_eq!(result(&mut controller, of(id)), told, "{id:#x}");
        }
        for id in [5, ALL_NAMESPACES - 1] {
            assert_eq!(status(&mut controller, of(id)), Status::INVALID_NAMESPACE, "{id:#x}");
        }
    }
}

/// What was set of a namespace goes with it, and not to the next that has its identifier.
#[test]
fn a_feature_of_a_namespace_ends_with_it() {
    let mut controller = managed();
    let get = Submission::get_features(FeatureId::ErrorRecovery, FeatureSelect::Current).with_dword(1, 1);
    result(&mut controller, Submission::set_features(FeatureId::ErrorRecovery, 7).with_dword(1, 1));

    let mut all = Namespaces::clone(controller.namespaces());
    controller.set_namespaces(&Arc::new(all.clone()));
    assert_eq!(result(&mut controller, get), 7, "nothing changed");
    all.begin_change(1, Change::Deleted).unwrap();
    all.on_erased(1, true);
    let format = all.formats().next().unwrap();
    let id = all.create(8, format).unwrap();
    all.attach(id, &[controller.settings().controller_id], true).unwrap();
    controller.set_namespaces(&Arc::new(all));
    assert_eq!((id, result(&mut controller, get)), (1, 0));
}

/// Base 2.1, figure 188: one that is allocated need not be attached, and of all those that are the controller's are formatted.
#[test]
fn a_format_is_of_what_is_allocated_and_of_nothing_it_succeeds() {
    let mut controller = with_two();
    let format = |id, erase| Submission::format_nvm(id, 0, erase);
    assert_eq!(status(&mut controller, format(3, 0)), Status::INVALID_FIELD, "there is none");
    assert_eq!(controller.admin(&format(2, 0)), AdminReply::Held, "attached to nobody");
    controller.on_erased(2, true);
    let own = controller.settings().controller_id;
    let mut all = Namespaces::clone(controller.namespaces());
    all.attach(1, &[own], false).unwrap();
    controller.set_namespaces(&Arc::new(all));
    for erase in [0, 1] {
        assert_eq!(result(&mut controller, format(ALL_NAMESPACES, erase)), 0, "none is attached");
    }
    assert_eq!(controller.admin(&format(1, 0)), AdminReply::Held, "detached");
}

/// LBAFU (bits 13:12) says nothing where no host can enable it, nor do bits 6:5 of FLBAS.
#[test]
fn the_upper_bits_of_a_format_are_ignored() {
    let mut controller = with_two();
    assert_eq!(controller.admin(&Submission::format_nvm(1, 0, 0).with_dword(10, 3 << 12)), AdminReply::Held);
    let mut structure = vec![0; 4096];
    structure[..8].copy_from_slice(&2048u64.to_le_bytes());
    structure[8..16].copy_from_slice(&2048u64.to_le_bytes());
    structure[26] = 3 << 5;
    let made = controller.admin_with(&Submission::create_namespace(NOWHERE), &structure);
    assert_eq!(made, AdminReply::success(3));
}

/// What a part of the list has not told is told by the next.
#[test]
fn a_part_of_the_changed_namespaces_leaves_the_others_there() {
    let mut controller = managed();
    controller.notice([1, 2, 4]);
    let mut read = |offset, dwords| {
        let part = Submission::get_log_page(log_page::CHANGED_NAMESPACES, offset, dwords, NOWHERE);
        data(&mut controller, part).chunks_exact(4).map(|id| id[0]).collect::<Vec<_>>()
    };
    assert_eq!(read(2048, 1), [0]);
    assert_eq!(read(4, 1), [2]);
    assert_eq!(read(0, 3), [1, 4, 0]);
    assert_eq!(read(0, 3), [0, 0, 0]);
}

/// A page that there is not says so, whatever else is wrong.
#[test]
fn a_discovery_controller_has_no_page_of_groups() {
    let settings = example();
    let role = Role::Discovery(Vec::new());
    let mut controller = ready_with(ControllerSettings { role, namespaces: Vec::new(), ..settings });
    let page = Submission::get_log_page(log_page::ENDURANCE_GROUP, 0, 1, NOWHERE);
    assert_eq!(status(&mut controller, page), Status::INVALID_LOG_PAGE);
}

/// Base §5.16: an offset greater than the page's size is refused.
#[test]
fn a_log_page_may_be_asked_for_from_its_end() {
    let mut controller = managed();
    let from = |offset| Submission::get_log_page(log_page::HEALTH, offset, 1, NOWHERE);
    assert_eq!([508, 512].map(|offset| data(&mut controller, from(offset)).len()), [4, 0]);
    assert_eq!(status(&mut controller, from(516)), Status::INVALID_FIELD);
}

/// Base figure 202: of those that there are one alone is told by command set. Of another than NVM no I/O command is there, where a host
/// may ask for it (Base §5.16.1.6): with one set in CC.CSS all is of that.
#[test]
fn a_command_set_is_looked_at_where_a_log_page_has_one() {
    let mut controller = managed();
    let of = |id, dwords, set: u32| Submission::get_log_page(id, 0, dwords, NOWHERE).with_dword(14, set << 24);
    for id in [log_page::SUPPORTED_PAGES, log_page::ERRORS, log_page::HEALTH, log_page::FIRMWARE, log_page::FEATURES] {
        assert_eq!(data(&mut controller, of(id, 1, 2)).len(), 4, "page {id:#x}");
    }
    let mut effects = |set| data(&mut controller, of(log_page::EFFECTS, 1024, set));
    let nvm = effects(0);
    assert_eq!(effects(2), nvm);
    controller.configuration = Configuration(0x46_0061);
    let mut effects = |set| data(&mut controller, of(log_page::EFFECTS, 1024, set));
    assert_eq!(effects(0), nvm);
    let other = effects(2);
    assert!(other[..1024] == nvm[..1024] && nvm[..1024] != [0; 1024], "admin commands are of no set");
    assert!(other[1024..].iter().all(|byte| *byte == 0) && nvm[1024..].iter().any(|byte| *byte != 0));
}

/// CNS 1Ah and 1Bh are CNS 10h and 05h for the one command set that there is.
#[test]
fn allocated_namespaces_are_told_by_command_set_too() {
    let mut controller = managed();
    let mut list = vec![1, 0, 0, 0];
    list.resize(4096, 0);
    for detached in [false, true] {
        if detached {
            let controllers: Vec<u8> = [1u16, 1].iter().flat_map(|word| word.to_le_bytes()).collect();
            let detach = Submission::attach_namespace(1, false, NOWHERE);
            assert_eq!(controller.admin_with(&detach, &controllers), AdminReply::DONE);
        }
        let told = [identify::ALLOCATED_NAMESPACES, identify::COMMAND_SET_ALLOCATED_NAMESPACES]
            .map(|cns| data(&mut controller, Submission::identify(cns, 0, NOWHERE)));
        assert_eq!(told, [&list[..]; 2], "detached: {detached}");
        for id in [1, 2] {
            let one = Submission::identify(identify::COMMAND_SET_ALLOCATED_NAMESPACE, id, NOWHERE);
            assert_eq!(data(&mut controller, one), [0; 4096], "what the NVM command set says");
        }
    }
    for cns in [identify::COMMAND_SET_ALLOCATED_NAMESPACES, identify::COMMAND_SET_ALLOCATED_NAMESPACE] {
        let of = |id| Submission::identify(cns, id, NOWHERE);
        assert_eq!(status(&mut controller, of(ALL_NAMESPACES)), Status::INVALID_NAMESPACE);
        assert_eq!(status(&mut controller, of(1).with_dword(11, 2 << 24)), Status::INVALID_FIELD, "zoned namespaces");
    }
    let beyond = Submission::identify(identify::COMMAND_SET_ALLOCATED_NAMESPACE, 5, NOWHERE);
    assert_eq!(status(&mut controller, beyond), Status::INVALID_NAMESPACE);
    let one = Submission::identify(identify::COMMAND_SET_ALLOCATED_NAMESPACE, 1, NOWHERE);
    assert_eq!(status(&mut ready_with(example()), one), Status::INVALID_FIELD, "it manages none");
}

#[test]
fn a_self_test_is_ended_whatever_the_namespace() {
    let mut controller = managed();
    let of = |code, id| Submission::device_self_test(code).with_dword(1, id);
    for id in [0, 1, 2, 77, ALL_NAMESPACES] {
        assert_eq!(status(&mut controller, of(0xf, id)), Status::SUCCESS, "{id}");
        assert_eq!(controller.next_event(), Some(DeviceEvent::SelfTestEnded));
    }
    let refused = [2, 77].map(|id| status(&mut controller, of(1, id)));
    assert_eq!(refused, [Status::INVALID_FIELD, Status::INVALID_NAMESPACE]);
}

/// The log is cleared and the count stays (Base §5.16.1.2).
#[test]
fn a_reset_leaves_no_error_entry_and_their_count() {
    let mut controller = managed();
    assert_eq!(status(&mut controller, Submission::new(0x7f, 1)), Status::INVALID_OPCODE);
    controller.write_property(registers::CC, 0);
    controller.on_stopped();
    controller.write_property(registers::CC, Configuration::ENABLE.0);
    controller.on_started();
    let page = |controller: &mut Controller, id| data(controller, Submission::get_log_page(id, 0, 16, NOWHERE));
    assert_eq!(page(&mut controller, log_page::ERRORS), [0; 64]);
    assert_eq!(status(&mut controller, Submission::new(0x7f, 1)), Status::INVALID_OPCODE);
    assert_eq!(page(&mut controller, log_page::ERRORS)[0], 2);
}

/// MDTS counts metadata between the blocks (Base figure 275), and not those that have a place of their own.
#[test]
fn metadata_apart_do_not_make_a_transfer_longer() {
    let mut settings = ControllerSettings { metadata: true, managed_namespaces: 4, ..example() };
    settings.namespaces[0].metadata = true;
    let controller = ready_with(settings);
    let read = |blocks| controller.movement(&Submission::read(1, 0, blocks, NOWHERE)).map(|_| ());
    assert_eq!([1024, 1025].map(read), [Ok(()), Err(Status::INVALID_FIELD)]);
}

/// CNS 12h and 13h: controllers from CNTID on, behind their number (Base §4.5.1).
#[test]
fn controllers_are_listed_from_the_one_that_is_asked_for_on() {
    let mut controller = managed();
    let mut all = Namespaces::clone(controller.namespaces());
    all.enter(7);
    controller.set_namespaces(&Arc::new(all));
    for (cns, id) in [(identify::CONTROLLERS, 0), (identify::NAMESPACE_CONTROLLERS, 1)] {
        let lists = [(0, vec![2, 1, 7]), (1, vec![2, 1, 7]), (2, vec![1, 7]), (7, vec![1, 7]), (8, vec![0])];
        for (from, list) in lists {
            let asked = Submission::identify(cns, id, NOWHERE).with_dword(10, u32::from(cns) | from << 16);
            let mut due: Vec<u8> = list.into_iter().flat_map(u16::to_le_bytes).collect();
            due.resize(4096, 0);
            assert_eq!(data(&mut controller, asked), due, "{cns:#x} from {from}");
        }
    }
}

/// All together are told of by CNS 00h, and their controllers by CNS 13h.
#[test]
fn what_is_allocated_is_told_of_one_namespace_by_who_manages_them() {
    let mut controller = managed();
    let of = |cns, id| Submission::identify(cns, id, NOWHERE);
    let refused = [(identify::ALLOCATED_NAMESPACE, ALL_NAMESPACES), (identify::NAMESPACE_CONTROLLERS, ALL_NAMESPACES)]
        .map(|(cns, id)| status(&mut controller, of(cns, id)));
    assert_eq!(refused, [Status::INVALID_NAMESPACE, Status::INVALID_FIELD]);
    for cns in identify::ALLOCATED_NAMESPACES..=identify::GRANULARITY {
        assert_eq!(data(&mut controller, of(cns, 1)).len(), 4096, "{cns:#x}");
        assert_eq!(status(&mut ready_with(example()), of(cns, 1)), Status::INVALID_FIELD, "{cns:#x}: it manages none");
    }
}
