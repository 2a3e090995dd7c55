//! What is varied: once, over values that there are, and with figures of what each run was asked for.

use super::{SWEEP, sweep};

/// The sweep with another axis instead of its depths.
fn along(axis: &str) -> String {
    let (head, rest) = SWEEP.split_once("[[axis]]\n").unwrap();
    let (_, tail) = rest.split_once("\n\n").unwrap();
    let (tail, _) = tail.split_once("[[metric]]\nname = \"iops_if_perfect\"").unwrap();
    format!("{head}[[axis]]\n{axis}\n\n{tail}")
}

fn complaint(text: &str) -> String {
    sweep(text).err().unwrap_or_else(|| panic!("it is read: {text}")).to_string()
}

/// Both rows of a choice would have named a timing that neither run had, which no other row shows where a third differs.
#[test]
fn what_choices_vary_is_said_by_no_other_axis_and_not_by_the_quick_form() {
    let drives = "name = \"drive\"\nchoice = [\n{ name = \"slow\", set.host.depth = 1 },\n{ name = \"fast\", set.host.depth = 8 }]";
    let [xor, plain] = ["xor", "plain"].map(|split| format!("set.firmware.address_split = \"{split}\""));
    let beside = |first: &str, second: &str| along(drives).replace(&xor, first).replace(&plain, second);
    let (deep, shallow) = ("set.host.depth = 4", "set.host.depth = 2");
    for (text, said) in [
        (beside(deep, &plain), "depth.toml:15: host.depth is 1; expected a key that line 20 does not set too"),
        (beside(deep, shallow), "depth.toml:15: host.depth is 1; expected a key that line 20 does not set too"),
        (beside(deep, deep), "depth.toml:15: host.depth is 1; expected a key that line 20 does not set too"),
        (
            along(drives).replace("[base]", "[quick]\nhost.depth = 2\n[base]"),
            "depth.toml:17: host.depth is 1; expected a key that line 7 does not set too",
        ),
    ] {
        assert_eq!(complaint(&text), said);
    }
    let room =
        drives.replace("host.depth = 1", "device.over_provisioning = 0.3").replace("host.depth = 8", "host.depth = 1");
    let elsewhere = along(&room).replace(&xor, "set.device.user_bytes = \"8MiB\"");
    let said = "device.over_provisioning is 0.3; expected a key that counts beside device.user_bytes, as line ";
    assert!(complaint(&elsewhere).contains(said), "{}", complaint(&elsewhere));
    let below = along(&room).replace("[base]", "[base]\ndevice.user_bytes = \"8MiB\"");
    assert!(complaint(&below).contains(said), "{}", complaint(&below));
    // A choice goes over the file's own keys, as it says; what all say alike names none; and nobody reads rows of the tiny form.
    let own = room.replace("set.device", "set.device.user_bytes = \"derived\", set.device");
    for text in [
        along(&own).replace("[base]", "[base]\ndevice.user_bytes = \"8MiB\""),
        along(drives).replace("[base]", "[base]\nhost.depth = 2"),
        along(drives).replace("[base]", "[tiny]\nhost.depth = 2\n[base]"),
        along(&drives.replace(" = 8", " = 1"))
            .replace(&xor, "set.host.depth = 2")
            .replace(&plain, "set.host.depth = 2"),
    ] {
        assert!(sweep(&text).is_ok(), "{text}");
    }
}
